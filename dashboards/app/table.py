"""A table with its download."""

from typing import Any

import streamlit as st


def table(
    frame: Any, name: str, *, title: str, columns: dict[str, Any] | None = None, height: int | None = None
) -> None:
    """Show a table that can be sorted, with a button that downloads all of it as CSV.

    ``frame``: pandas ``DataFrame``. ``name``: of the file, without ending. ``title``: what the table is, also for those
    who cannot see it. ``columns``: Streamlit's settings of columns by name.
    """
    st.dataframe(
        frame,
        hide_index=True,
        column_config=columns,
        height=height if height is not None else "auto",
        placeholder="–",
        alt=title,
        key=f"table_{name}",
    )
    download(frame, name)


def download(frame: Any, name: str) -> None:
    """The button alone; numbers are written as they were computed, not as they are shown."""
    st.download_button(
        f"Download {name}.csv",
        frame.to_csv(index=False),
        file_name=f"{name}.csv",
        mime="text/csv",
        on_click="ignore",
        icon=":material/download:",
        key=f"download_{name}",
    )
