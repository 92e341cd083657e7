"""The stored run of the default experiment, and the sentence on the stronger attack that a verdict has from it."""

from tasks.results.default_run import found_by_full_audit, read_run
from tasks.results.readings import stronger

ROW = {"dataset": "chat", "technique": "a", "filler": "b", "method": "top_k", "seed": 1}
RUN = {
    "recommended": "chat/a/b-top_k-1",
    "rows": [
        ROW | {"method": "sample"},
        ROW
        | {
            "membership_auc": 0.578,
            "membership_auc_ci": [0.559, 0.595],
            "membership_tpr_1": 0.01,
            "reidentified": 0.031,
        }
        | {"full": {"membership_lira_auc": 0.7614, "membership_lira_tpr_1": 0.18, "reidentified": 0.08}},
    ],
}


def test_the_sentence_has_both_figures_of_each_attack():
    assert found_by_full_audit(RUN) == (
        "On the default experiment's corpus: masked words recovered, top-1, %, from 3.1 to 8.0; "
        "membership inference, AUC, from 0.578 [0.559, 0.595] to 0.761; "
        "membership inference, TPR at 1 % FPR, %, from 1.0 to 18.0."
    )


def test_a_quick_audit_names_the_stronger_attack_and_its_size():
    (found,) = stronger({"effort": "quick"})
    assert found.endswith(found_by_full_audit(read_run()))
    assert stronger({"effort": "full"}) == []
