"""Shared prefixes as a tree: nodes, what each sees, and sums of edges."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.language_model.prefix_trees import score_sequences

END = 9


sequences = st.lists(
    st.lists(st.integers(1, 4), max_size=7).map(lambda inner: (0, *inner, END)), min_size=1, max_size=12, unique=True
)


@settings(max_examples=30, deadline=None)
@given(st.lists(sequences, min_size=1, max_size=4), st.integers(1, 12))
def test_sums_are_those_of_single_sequences_however_trees_are_divided(groups, most_nodes):
    def score(prefix, token):
        # Any function of the whole prefix and the next token.
        return float((sum((place + 1) * part for place, part in enumerate(prefix)) * 31 + token) % 101)

    def scores_of(batch):
        width = batch.tokens.shape[1]
        visible = batch.visible
        return np.array(
            [
                score(batch.tokens[place // width][visible[place // width, place % width]].tolist(), token)
                for place, token in zip(batch.edge_place.tolist(), batch.edge_token.tolist(), strict=True)
            ]
        )

    found = score_sequences(groups, scores_of, batch_nodes=8, most_nodes=most_nodes)
    for group, sums in zip(groups, found, strict=True):
        assert sums.tolist() == [sum(score(one[:n], one[n]) for n in range(1, len(one))) for one in group]
