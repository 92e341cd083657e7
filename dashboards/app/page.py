"""The app's frame: views of the runs and reports of the experiment in the folder that it was started in.

Started by ``palimpsest up``; alone by ``streamlit run dashboards/app/page.py``.
"""

import hmac
import os
from pathlib import Path

import streamlit as st

from dashboards.app import compare_view, follow_view, forgetting_view, results_view
from dashboards.services.service import APP_PASSWORD
from tasks import telemetry
from tasks.errors import PalimpsestError

_LOGGED_IN = "logged in"
VIEWS = {
    "results": results_view.show,
    "compare": compare_view.show,
    "follow": follow_view.show,
    "forgetting": forgetting_view.show,
}
"""By their names in the address. Pages of Streamlit's own would ask the server for files that it does not have."""


def main() -> None:
    """Draw the view that the address names: ``?view=compare``."""
    telemetry.switch_off()
    # A name of one of Streamlit's own icons would be fetched from the network.
    icon = str(Path(__file__).with_name("icon.svg"))
    st.set_page_config(page_title="palimpsest", page_icon=icon, layout="wide", initial_sidebar_state="auto")
    if not logged_in():
        return
    view = st.segmented_control(
        "View",
        list(VIEWS),
        default="results",
        required=True,
        key="view",
        bind="query-params",
        label_visibility="collapsed",
    )
    try:
        VIEWS[view or "results"]()
    except PalimpsestError as error:
        st.error(str(error), icon=":material/error:")


def logged_in() -> bool:
    """Whether this tab has given the password, where the app asks for one; it is asked for otherwise."""
    password = os.environ.get(APP_PASSWORD)
    if not password or st.session_state.get(_LOGGED_IN):
        return True
    place = st.empty()
    given = place.text_input("Password", type="password")
    if hmac.compare_digest(given.encode(), password.encode()):
        st.session_state[_LOGGED_IN] = True
        place.empty()
        return True
    if given:
        st.error("That is not the password; 'palimpsest up' shows it.", icon=":material/lock:")
    return False


if __name__ == "__main__":
    main()
