"""Shared prefixes as a tree: nodes, what each sees, and sums of edges."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.language_model.prefix_trees import batch_trees, batches_by_size, prefix_tree, score_sequences

END = 9
SEQUENCES = st.lists(
    st.lists(st.integers(1, 4), max_size=7).map(lambda inner: (0, *inner, END)), min_size=1, max_size=12, unique=True
)


@settings(max_examples=50, deadline=None)
@given(st.lists(SEQUENCES, min_size=1, max_size=4), st.integers(1, 12))
def test_sums_are_those_of_single_sequences_however_trees_are_divided(groups, most_nodes):
    """Every node sees the prefix that it stands for."""

    def score(prefix, token):
        # Any function of the whole prefix and the next token.
        return float((sum((place + 1) * part for place, part in enumerate(prefix)) * 31 + token) % 101)

    def scores_of(batch):
        width, visible = batch.tokens.shape[1], batch.visible
        places = [divmod(place, width) for place in batch.edge_place.tolist()]
        prefixes = [batch.tokens[row][visible[row, place]].tolist() for row, place in places]
        return np.array([score(*edge) for edge in zip(prefixes, batch.edge_token.tolist(), strict=True)])

    found = score_sequences(groups, scores_of, batch_nodes=8, most_nodes=most_nodes)
    for group, sums in zip(groups, found, strict=True):
        assert sums.tolist() == [sum(score(one[:n], one[n]) for n in range(1, len(one))) for one in group]
        prefixes = {one[:length] for one in group for length in range(1, len(one))}
        assert len(prefix_tree(group)) == len(prefixes), "each prefix is computed once"


def test_batches_hold_every_tree_once_and_little_padding():
    trees = [prefix_tree([(0, *range(1, size), END)]) for size in (3, 8, 5, 2)]
    assert batches_by_size(trees, 10) == [[1], [2, 0], [3]]
    # Padding sees itself alone.
    batch = batch_trees([prefix_tree([(0, 1, 2, END), (0, 1, 3, END)]), prefix_tree([(0, END)])])
    assert batch.visible[0].astype(int).tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 0, 1]]
    assert (batch.visible[1] == np.eye(4, dtype=bool)).all()
