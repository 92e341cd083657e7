import xml.etree.ElementTree as ElementTree

import pytest

from tasks.results.plot_panel import Panel, Scale, scale_round, spread


def test_a_linear_scale_maps_ends_and_middle():
    scale = Scale(0.0, 10.0, 100.0, 300.0)
    assert [scale(value) for value in (0, 5, 10)] == [100, 200, 300]
    assert scale(99) == 300


def test_a_logarithmic_scale_maps_equal_ratios_to_equal_distances():
    scale = Scale(10.0, 1000.0, 0.0, 200.0, logarithmic=True)
    assert scale(100.0) == pytest.approx(100.0)
    assert scale(1000.0) - scale(100.0) == pytest.approx(scale(100.0) - scale(10.0))


def test_ticks_are_round_and_inside():
    assert Scale(0.0, 0.2, 0, 1).ticks(5) == pytest.approx([0, 0.05, 0.1, 0.15, 0.2])
    assert Scale(187.0, 660.0, 0, 1, logarithmic=True).ticks(5) == [200, 300, 400, 500]
    assert Scale(191.0, 214.0, 0, 1, logarithmic=True).ticks(5) == [195, 200, 205, 210]


def test_a_scale_of_one_value_does_not_fail():
    for logarithmic in (False, True):
        scale = scale_round([5.0, 5.0], 0.0, 100.0, logarithmic=logarithmic)
        assert 0 < scale(5.0) < 100


def test_labels_move_apart_and_keep_their_order():
    moved = spread([50.0, 52.0, 51.0, 90.0], 0.0, 100.0, gap=10.0)
    assert moved == [50.0, 70.0, 60.0, 90.0]
    bottom = spread([99.0, 100.0], 0.0, 100.0, gap=10.0)
    assert bottom == [90.0, 100.0]


def test_a_panel_is_well_formed_and_escapes_its_texts():
    panel = Panel(200, 100)
    panel.text(1, 1, "<b> & co")
    panel.mark(5, 5, "diamond", "c1", 'a "name" <i>')
    root = ElementTree.fromstring(panel.svg("A <name>", 'what "it" says'))
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == 'A <name>. what "it" says'
    assert root.find("text").text == "<b> & co"
    assert root.find("g/title").text == 'a "name" <i>'
