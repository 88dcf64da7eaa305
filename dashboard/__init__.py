"""The window: Streamlit pages over the client."""
