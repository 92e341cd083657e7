"""The model against GPT-2 of Hugging Face with the same weights, and its properties."""

import pytest
import torch

from tasks.language_model.settings import ArchitectureSettings
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.torch_setup import stand_in_for_torchaudio_extension

ARCHITECTURE = ArchitectureSettings(layers=2, heads=2, width=16, maximum_tokens=12)
WORDS = 31


@pytest.fixture
def model() -> TransformerLanguageModel:
    model = TransformerLanguageModel(ARCHITECTURE, WORDS)
    model.initialise(3)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():  # biases and norms away from 0 and 1, so that each of them counts
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
    return model.eval()


def as_gpt2(model: TransformerLanguageModel):
    """The same weights as a Hugging Face GPT-2."""
    stand_in_for_torchaudio_extension()
    from transformers import GPT2Config, GPT2LMHeadModel

    architecture = model.architecture
    peer = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=model.embedding.num_embeddings,
            n_positions=architecture.maximum_tokens,
            n_embd=architecture.width,
            n_layer=architecture.layers,
            n_head=architecture.heads,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=2,
            eos_token_id=3,
        )
    )
    names = {
        "attention_norm": "ln_1",
        "attention_input": "attn.c_attn",
        "attention_output": "attn.c_proj",
        "feed_forward_norm": "ln_2",
        "feed_forward_input": "mlp.c_fc",
        "feed_forward_output": "mlp.c_proj",
    }
    weights = {"transformer.wte.weight": model.embedding.weight, "transformer.wpe.weight": model.positions.weight}
    for name, parameter in model.final_norm.named_parameters():
        weights[f"transformer.ln_f.{name}"] = parameter
    for index, block in enumerate(model.blocks):
        for name, parameter in block.named_parameters():
            part, kind = name.split(".")
            # GPT-2 keeps its matrices transposed.
            tensor = parameter.t() if parameter.dim() == 2 else parameter
            weights[f"transformer.h.{index}.{names[part]}.{kind}"] = tensor
    weights = {name: tensor.detach().clone() for name, tensor in weights.items()}
    missing, unexpected = peer.load_state_dict(weights, strict=False)
    assert not unexpected
    assert set(missing) <= {"lm_head.weight"}  # tied
    return peer.eval()


def test_scores_and_gradients_equal_those_of_gpt2_with_the_same_weights(model):
    tokens = torch.randint(0, WORDS, (3, 12), generator=torch.Generator().manual_seed(1))
    peer = as_gpt2(model)
    ours, theirs = model.logits(tokens), peer(tokens).logits
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    (ours**2).mean().backward()
    (theirs**2).mean().backward()
    torch.testing.assert_close(model.embedding.weight.grad, peer.transformer.wte.weight.grad, rtol=1e-3, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(model.logits(tokens), theirs, rtol=1e-4, atol=1e-4)
