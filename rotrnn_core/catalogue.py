"""Which tasks are there? What each is, how long, how many classes and examples, whose it is; needs no torch."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class TaskInfo:
    """What a task is, for people and for the API.

    Args:
        name: As configurations write it.
        title: For people.
        summary: What the examples are and how the splits are made.
        classes: Number of classes.
        longest: Steps of the longest sequence.
        train_size: Examples to train on; likewise validation_size and test_size.
        stand_in: Its numbers never stand beside published ones.
        licence: Under which terms the data may be used, as their publisher says.
        citation: Where the task comes from.
        kind: Token ids, or real-valued frames of `channels` numbers.
        tokens: Number of token ids, 0 for frames.
        channels: Width of a frame, 0 for token ids.
        documents: Sequences per example.
        generated: Examples are drawn from a seed, as many as one likes.
        seeded: `data_seed` chooses the examples or the split.
        released: Examples can be read from a published release.
        half_rate: The tested network is tested once more on every second sample of the test split.
        class_names: What each class is; its number where that says enough.
        floor_majority: Test accuracy of always saying the commonest class; None where it is not known.
        floor_simple: Test accuracy of a simple method that looks at no order; None where it is not known.
        floor_method: That method.
    """

    name: str
    title: str
    summary: str
    classes: int
    longest: int
    train_size: int
    validation_size: int
    test_size: int
    stand_in: bool
    licence: str
    citation: str
    kind: Literal["tokens", "frames"] = "tokens"
    tokens: int = 0
    channels: int = 0
    documents: int = 1
    generated: bool = False
    seeded: bool = False
    released: bool = True
    half_rate: bool = False
    class_names: tuple[str, ...] = ()
    floor_majority: float | None = None
    floor_simple: float | None = None
    floor_method: str = ""

    @property
    def floor(self) -> float | None:
        """The highest known floor."""
        return max((f for f in (self.floor_majority, self.floor_simple) if f is not None), default=None)


LRA = "Long Range Arena, arXiv:2011.04006"
_WORDS = (
    "backward bed bird cat dog down eight five follow forward four go happy house learn left marvin nine no off on one "
    "right seven sheila six stop three tree two up visual wow yes zero"
)
WORDS = tuple(_WORDS.split())
"""The words of Speech Commands, in the order of their classes."""
OBJECTS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
"""The classes of CIFAR-10."""

TASKS: dict[str, TaskInfo] = {
    task.name: task
    for task in (
        TaskInfo(
            name="listops",
            title="ListOps",
            summary="Long ListOps, the grammar of Long Range Arena: trees with 500 < length < 2000, generated from a "
            "seed (the published file cannot be regenerated bit for bit), or read from the release.",
            classes=10,
            tokens=18,
            longest=2048,
            train_size=96_000,
            validation_size=2_000,
            test_size=2_000,
            stand_in=False,
            licence="Apache-2.0 (the release); generated trees are free",
            citation=f"ListOps, arXiv:1804.06028; {LRA}",
            generated=True,
            seeded=True,
            floor_majority=0.160,
            floor_simple=0.171,
            floor_method="ridge regression on the counts of each token, of trees drawn from seed 0",
        ),
        TaskInfo(
            name="listops-short",
            title="ListOps short",
            summary="The grammar of ListOps with 20 <= length <= 200 and an end mark, for machines without a GPU; a "
            "stand-in that never stands beside Long Range Arena numbers.",
            classes=10,
            tokens=18,
            longest=201,
            train_size=20_000,
            validation_size=1_000,
            test_size=1_000,
            stand_in=True,
            licence="generated trees are free",
            citation="the grammar of ListOps, arXiv:1804.06028",
            generated=True,
            seeded=True,
            released=False,
            floor_majority=0.147,
            floor_simple=0.224,
            floor_method="ridge regression on the counts of each token, of trees drawn from seed 0",
        ),
        TaskInfo(
            name="text",
            title="Text",
            summary="Film reviews as bytes, cut at 4096: is the opinion good? Long Range Arena validates on the test "
            "split; here a tenth of the train split is held out instead.",
            classes=2,
            tokens=246,
            longest=4096,
            train_size=22_500,
            validation_size=2_500,
            test_size=25_000,
            stand_in=False,
            class_names=("bad", "good"),
            licence="no licence is stated; for research, with citation",
            citation=f"Maas et al., Learning word vectors for sentiment analysis, ACL 2011; {LRA}",
            floor_majority=0.5,
        ),
        TaskInfo(
            name="retrieval",
            title="Retrieval",
            summary="Pairs of papers as bytes, each cut at 4000: does one cite the other?",
            classes=2,
            tokens=246,
            documents=2,
            longest=4000,
            train_size=147_086,
            validation_size=18_090,
            test_size=17_437,
            stand_in=False,
            class_names=("apart", "cites"),
            licence="ACL Anthology Network: for research, with citation; release Apache-2.0",
            citation=f"Radev et al., The ACL Anthology Network corpus, 2013; {LRA}",
            floor_majority=0.5,
        ),
        TaskInfo(
            name="image",
            title="Image",
            summary="CIFAR-10 in shades of gray, a pixel per step, row by row; the last tenth of the train batches "
            "is the validation split.",
            classes=10,
            kind="frames",
            channels=1,
            longest=1024,
            train_size=45_000,
            validation_size=5_000,
            test_size=10_000,
            stand_in=False,
            class_names=OBJECTS,
            licence="no licence is stated; with citation",
            citation=f"Krizhevsky, Learning multiple layers of features from tiny images, 2009; {LRA}",
            floor_majority=0.1,
        ),
        TaskInfo(
            name="image-colour",
            title="Image in colour",
            summary="CIFAR-10 in colour, three numbers per step: an easier task than Image, never beside its numbers.",
            classes=10,
            kind="frames",
            channels=3,
            longest=1024,
            train_size=45_000,
            validation_size=5_000,
            test_size=10_000,
            stand_in=False,
            class_names=OBJECTS,
            licence="no licence is stated; with citation",
            citation="Krizhevsky, Learning multiple layers of features from tiny images, 2009",
            floor_majority=0.1,
        ),
        TaskInfo(
            name="pathfinder",
            title="Pathfinder",
            summary="Pictures of 32 x 32 in which two dots lie on one dashed line or on two; the release's "
            "curv_contour_length_14, split 80/10/10 at random with seed 42.",
            classes=2,
            kind="frames",
            channels=1,
            longest=1024,
            train_size=160_000,
            validation_size=20_000,
            test_size=20_000,
            stand_in=False,
            class_names=("two lines", "one line"),
            licence="Apache-2.0 (the release)",
            citation=f"Linsley et al., arXiv:1805.08315; {LRA}",
            floor_majority=0.5,
        ),
        TaskInfo(
            name="path-x",
            title="Path-X",
            summary="Pathfinder in pictures of 128 x 128.",
            classes=2,
            kind="frames",
            channels=1,
            longest=16_384,
            train_size=160_000,
            validation_size=20_000,
            test_size=20_000,
            stand_in=False,
            class_names=("two lines", "one line"),
            licence="Apache-2.0 (the release)",
            citation=f"Linsley et al., arXiv:1805.08315; {LRA}",
            floor_majority=0.5,
        ),
        TaskInfo(
            name="contours",
            title="Contours",
            summary="Dashed lines in pictures of 32 x 32, drawn from a seed: do the two dots end one line? A stand-in "
            "for machines without the release of Pathfinder, never beside its numbers.",
            classes=2,
            kind="frames",
            channels=1,
            longest=1024,
            train_size=20_000,
            validation_size=2_000,
            test_size=2_000,
            stand_in=True,
            class_names=("two lines", "one line"),
            licence="generated pictures are free",
            citation="after Linsley et al., arXiv:1805.08315",
            generated=True,
            seeded=True,
            released=False,
            floor_majority=0.511,
            floor_simple=0.523,
            floor_method="ridge regression on pixels, of pictures drawn from seed 0",
        ),
        TaskInfo(
            name="speech-commands",
            title="Speech Commands 35",
            summary="Spoken words at 16 kHz, one second each, shorter ones padded with silence; splits by the "
            "release's lists.",
            classes=35,
            kind="frames",
            channels=1,
            longest=16_000,
            train_size=84_843,
            validation_size=9_981,
            test_size=11_005,
            stand_in=False,
            half_rate=True,
            class_names=WORDS,
            licence="CC BY 4.0",
            citation="Warden, Speech Commands, arXiv:1804.03209",
        ),
        TaskInfo(
            name="sequential-mnist",
            title="Sequential MNIST",
            summary="Handwritten digits of 28 x 28, a pixel per step; the last 5,000 training images are the "
            "validation split.",
            classes=10,
            kind="frames",
            channels=1,
            longest=784,
            train_size=55_000,
            validation_size=5_000,
            test_size=10_000,
            stand_in=False,
            licence="CC BY-SA 3.0",
            citation="LeCun et al., Gradient-based learning applied to document recognition, 1998",
            floor_majority=0.1135,
            floor_simple=0.88,
            floor_method="linear classifier on pixels (LeCun et al. 1998)",
        ),
        TaskInfo(
            name="fashion-mnist",
            title="Fashion-MNIST",
            summary="Articles of clothing in pictures of 28 x 28, a pixel per step; the last 5,000 training images "
            "are the validation split. Debian's package dataset-fashion-mnist is found by itself.",
            classes=10,
            kind="frames",
            channels=1,
            longest=784,
            train_size=55_000,
            validation_size=5_000,
            test_size=10_000,
            stand_in=False,
            class_names=(
                "T-shirt",
                "trousers",
                "pullover",
                "dress",
                "coat",
                "sandal",
                "shirt",
                "sneaker",
                "bag",
                "ankle boot",
            ),
            licence="MIT",
            citation="Xiao et al., arXiv:1708.07747",
            floor_majority=0.1,
            floor_simple=0.811,
            floor_method="ridge regression on pixels",
        ),
        TaskInfo(
            name="digits",
            title="Digits",
            summary="scikit-learn's handwritten digits of 8 x 8, a pixel per step; the data seed shuffles them into "
            "splits. Needs no download.",
            classes=10,
            kind="frames",
            channels=1,
            longest=64,
            train_size=1_297,
            validation_size=200,
            test_size=300,
            stand_in=False,
            licence="CC BY 4.0",
            citation="Alpaydin and Kaynak, Optical recognition of handwritten digits, UCI 1998",
            seeded=True,
            released=False,
            floor_majority=0.1,
            floor_simple=0.94,
            floor_method="ridge regression on pixels, split by seed 0",
        ),
    )
}
"""The one list of tasks."""
