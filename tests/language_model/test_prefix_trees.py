"""Shared prefixes as a tree: nodes, what each sees, and sums of edges."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.language_model.prefix_trees import batch_trees, batches_by_size, prefix_tree, score_sequences

END = 9


def test_two_sequences_share_their_beginning():
    # 0 1 2 9 and 0 1 3 4 9: the nodes are 0, 1, 2 and 3, 4.
    tree = prefix_tree([(0, 1, 3, 4, END), (0, 1, 2, END)])
    assert tree.tokens.tolist() == [0, 1, 2, 3, 4]
    assert tree.depth.tolist() == [0, 1, 2, 2, 3]
    assert tree.end.tolist() == [5, 5, 3, 5, 5]
    assert list(zip(tree.edge_node.tolist(), tree.edge_token.tolist(), strict=True)) == [
        (0, 1), (1, 2), (2, END), (1, 3), (3, 4), (4, END),
    ]  # fmt: skip
    # Edges worth 1, 10, 100 ...: the first sequence has 0-1, 1-3, 3-4 and 4-end, the second 0-1, 1-2 and 2-end.
    assert tree.sums(10.0 ** np.arange(6)).tolist() == [111_001.0, 111.0]


def test_what_each_node_sees():
    batch = batch_trees([prefix_tree([(0, 1, 2, END), (0, 1, 3, END)]), prefix_tree([(0, END)])])
    assert batch.visible[0].astype(int).tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 0, 1]]
    # The second tree has one node; padding sees itself alone.
    assert batch.visible[1].astype(int).tolist() == np.eye(4, dtype=int).tolist()
    assert batch.edge_place.tolist() == [0, 1, 2, 1, 3, 4]
    assert batch.edge_counts.tolist() == [5, 1]


sequences = st.lists(
    st.lists(st.integers(1, 4), max_size=7).map(lambda inner: (0, *inner, END)), min_size=1, max_size=12, unique=True
)


@settings(max_examples=200, deadline=None)
@given(sequences)
def test_every_node_sees_the_prefix_that_it_stands_for(group):
    tree = prefix_tree(group)
    batch = batch_trees([tree])
    prefixes = {tuple(tree.tokens[seen].tolist()) for seen in batch.visible[0]}
    assert prefixes == {one[:length] for one in group for length in range(1, len(one))}
    assert len(tree) == len(prefixes)


@settings(max_examples=100, deadline=None)
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


def test_batches_hold_every_tree_once_and_little_padding():
    trees = [prefix_tree([(0, *range(1, size), END)]) for size in (3, 8, 5, 2)]
    assert batches_by_size(trees, 10) == [[1], [2, 0], [3]]
