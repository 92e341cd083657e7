"""What models were made to forget: the table of the report page, and what is left against what it costs."""

import streamlit as st

from dashboards.app.charts import forgetting_scatter, grid_table
from tasks.results.forgetting import by_dataset, forgetting_grid, forgetting_legend, left_of_secrets, read_forgetting
from tasks.results.report_index import REPORTS


def show() -> None:
    """Draw the page."""
    st.title("Forgetting", anchor=False)
    found = by_dataset(read_forgetting(REPORTS))
    if not found:
        st.info("No way to forget was tried: 'palimpsest profile forgetting' and 'run' try several.")
    for dataset, reports in found.items():
        grid = forgetting_grid(reports)
        st.subheader(dataset, anchor=False)
        grid_table(grid, f"{dataset}_forgetting")
        st.caption(forgetting_legend(reports[0]))
        for heading, left in left_of_secrets(reports).items():
            st.altair_chart(forgetting_scatter(left), width="stretch", alt=f"Left of secrets of {dataset}, {heading}")
            st.caption(f"{heading}; grey: the models before and retrained")
