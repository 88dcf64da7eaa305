"""What can Postgres keep as text? Anything but NUL and lone surrogates."""


def storable(text: str, longest: int = 16_384) -> str:
    """The text with what Postgres cannot keep replaced, cut to a length with the middle left out."""
    clean = text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    if len(clean) <= longest:
        return clean
    half = longest // 2
    return f"{clean[:half]}\n... {len(clean) - 2 * half} characters left out ...\n{clean[-half:]}"
