"""transformers imports torchaudio, whose extension has a stand-in; and a recogniser for tests that only read it."""

import pytest

from tasks.torch_setup import stand_in_for_torchaudio_extension

stand_in_for_torchaudio_extension()


@pytest.fixture(scope="session")
def recogniser_folder(tmp_path_factory):
    """A recogniser with random weights that emits a unit every few frames."""
    from tiny_recogniser import random_recogniser

    from tasks.speech.recogniser.recogniser import save_recogniser

    folder = tmp_path_factory.mktemp("recogniser") / "model"
    save_recogniser(folder, random_recogniser(emits=True))
    return folder
