"""Steps 4 and 5: the downstream language model, its adaptation and its perplexity (paper 3.3, 4.2).

``vocabulary``, ``pretrain``, ``adapt`` and ``perplexity`` are the commands. Each kind of model has a package:
``transformer`` (the paper's, trained in ``training``), ``ngram`` and ``causal_lm``. ``evaluation`` is the same for all.
"""
