import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from skymemory.demo.model import demo_tokenizer
from skymemory.prompt.fingerprint import Fingerprint

TINY = LlamaConfig(hidden_size=32, intermediate_size=16, num_hidden_layers=1, vocab_size=32)


def fingerprint(*model_and_tokenizer: Any) -> bytes:
    return Fingerprint(*model_and_tokenizer).digest()


def test_same_model_same_digest(make_llama, tokenizer) -> None:
    assert fingerprint(make_llama(), tokenizer) == fingerprint(make_llama(), demo_tokenizer())


def test_a_saved_and_loaded_model_is_the_same(make_llama, tokenizer, tmp_path) -> None:
    """So that two hosts share a cache, wherever their files are."""
    model = make_llama()
    model.save_pretrained(tmp_path / "here")
    tokenizer.save_pretrained(tmp_path / "here")
    (tmp_path / "here").rename(tmp_path / "there")
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "there", dtype="auto")
    assert fingerprint(loaded, AutoTokenizer.from_pretrained(tmp_path / "there")) == fingerprint(model, tokenizer)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_single_weight_counts(make_llama, tokenizer, dtype) -> None:
    model = make_llama(dtype=dtype)
    seen = {fingerprint(model, tokenizer)}
    tensors = [*model.parameters(), *model.buffers()]
    for number, tensor in enumerate(tensors):
        flat = tensor.data.view(-1)
        flat[number % flat.numel()] += 0.5
        seen.add(fingerprint(model, tokenizer))
    assert len(seen) == len(tensors) + 1


def optimiser_step(model: LlamaForCausalLM) -> None:
    weight = model.model.norm.weight
    weight.grad = torch.ones_like(weight)
    torch.optim.SGD([weight], lr=1e-3).step()


class Adapter(torch.nn.Module):
    """Keeps its settings where peft's layers do."""

    def __init__(self) -> None:
        super().__init__()
        self.scaling = {"default": 1.0}
        self.kind: str | None = None
        self.variants = [{"use_dora": {"default": False}}]
        self.vector = torch.zeros(8)  # neither parameter nor buffer


class QuantState:
    """As the packed weights of bitsandbytes carry one."""

    def __init__(self) -> None:
        self.absmax = torch.ones(4)


def with_adapter(make_llama: Callable[..., LlamaForCausalLM]) -> LlamaForCausalLM:
    model = make_llama()
    model.model.layers[0].self_attn.adapter = Adapter()
    model.peft_config = {"default": LlamaConfig(name_or_path="here", lora_alpha=4)}  # any object with `to_dict`
    model.lm_head.weight.quant_state = QuantState()
    return model


def adapter_of(model: LlamaForCausalLM) -> Adapter:
    return model.model.layers[0].self_attn.adapter


CHANGES: dict[str, Callable[[LlamaForCausalLM], object]] = {
    "config": lambda model: setattr(model.config, "rms_norm_eps", 1e-5),
    "rope": lambda model: model.config.rope_parameters.update(rope_theta=500000.0),
    "epsilon of a module": lambda model: setattr(model.model.norm, "variance_epsilon", 1e-5),
    "scaling of a module": lambda model: setattr(model.model.layers[1].self_attn, "scaling", 0.3),
    "training": lambda model: model.train(),
    "dtype": lambda model: model.to(torch.bfloat16),
    "in place": lambda model: model.model.layers[0].mlp.up_proj.weight.detach().add_(1e-3),
    "optimiser": optimiser_step,
    "all of a tensor through data": lambda model: model.lm_head.weight.data.mul_(1.5),
    "tensor replaced": lambda model: setattr(model.lm_head.weight, "data", model.lm_head.weight.data.clone() + 1),
    "adapter": lambda model: model.model.layers[0].register_parameter("lora", torch.nn.Parameter(torch.zeros(2))),
    "adapter switched off": lambda model: setattr(model.model.layers[0].mlp, "_disable_adapters", True),
    "row through data": lambda model: model.lm_head.weight.data[37].add_(1e-3),
    "column through data": lambda model: model.lm_head.weight.data[:, 37].add_(1e-3),
    "value of a norm through data": lambda model: model.model.norm.weight.data[5].add_(1e-3),
    "scaling of an adapter": lambda model: adapter_of(model).scaling.update(default=16.0),
    "word": lambda model: setattr(adapter_of(model), "kind", "eva"),
    "nested": lambda model: adapter_of(model).variants[0]["use_dora"].update(default=True),
    "attribute added": lambda model: setattr(model.model, "steering", None),
    "tensor that is an attribute": lambda model: adapter_of(model).vector.data[3].add_(1),
    "scales of a packed weight": lambda model: model.lm_head.weight.quant_state.absmax.data[0].add_(1),
    "configuration of an adapter": lambda model: setattr(model.peft_config["default"], "lora_alpha", 64),
    "weights tied": lambda model: setattr(model.lm_head, "weight", model.model.embed_tokens.weight),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_noticed_without_being_told(make_llama, tokenizer, name) -> None:
    model = with_adapter(make_llama)
    kept = Fingerprint(model, tokenizer)
    before = kept.digest()
    assert kept.digest() == before
    CHANGES[name](model)
    assert kept.digest() != before
    assert kept.digest() == fingerprint(model, tokenizer)


def test_a_single_value_through_data_is_seen_when_told_or_in_its_turn(make_llama, tokenizer) -> None:
    model = make_llama()
    kept = Fingerprint(model, tokenizer)
    before = kept.digest()
    model.lm_head.weight.data[3, 3] += 1
    changed = fingerprint(model, tokenizer)
    assert changed != before
    turns = len(list(model.parameters())) + len(list(model.buffers()))  # each is smaller than a piece
    assert changed in [kept.digest() for _ in range(turns)]
    model.lm_head.weight.data[3, 3] += 1
    kept.forget()
    assert kept.digest() not in (before, changed)


def test_tensors_that_are_not_contiguous_are_watched_in_place(make_llama, tokenizer) -> None:
    model = make_llama()
    for weight in (model.lm_head.weight, model.model.layers[0].self_attn.k_proj.weight):  # a large and a small one
        weight.data = weight.data.t().contiguous().t()
    kept = Fingerprint(model, tokenizer)
    seen = {kept.digest()}
    assert kept.digest() in seen
    model.lm_head.weight.data[37] += 1
    seen.add(kept.digest())
    model.model.layers[0].self_attn.k_proj.weight.data[3, 3] += 1
    seen.add(kept.digest())
    assert len(seen) == 3
    assert fingerprint(model, tokenizer) == fingerprint(model, tokenizer)


UNIMPORTANT: dict[str, Callable[[LlamaForCausalLM], object]] = {
    "padding": lambda model: setattr(model.config, "pad_token_id", 1),
    "use_cache": lambda model: setattr(model.config, "use_cache", False),
    "sampling": lambda model: setattr(model.generation_config, "temperature", 0.3),
    "origin": lambda model: setattr(model.config, "_name_or_path", "elsewhere"),
    "origin of an adapter": lambda model: setattr(model.peft_config["default"], "_name_or_path", "elsewhere"),
    "hooks that look on": lambda model: model(torch.tensor([[3]]), output_hidden_states=True),
}


@pytest.mark.parametrize("name", UNIMPORTANT)
def test_what_has_no_influence_changes_nothing(make_llama, tokenizer, name) -> None:
    model = with_adapter(make_llama)
    kept = Fingerprint(model, tokenizer)
    before = kept.digest()
    UNIMPORTANT[name](model)
    assert kept.digest() == before
    assert fingerprint(model, tokenizer) == before


def test_a_hook_is_refused_until_it_is_gone(make_llama, tokenizer) -> None:
    model = make_llama()
    kept = Fingerprint(model, tokenizer)
    before = kept.digest()
    layer = model.model.layers[1]
    for register in (layer.register_forward_hook, torch.nn.modules.module.register_module_forward_hook):
        handle = register(lambda module, inputs, output: output)
        with pytest.raises(ValueError, match="what it does to keys and values cannot be known"):
            kept.digest()
        handle.remove()
        assert kept.digest() == before
    layer.forward = lambda *inputs: inputs
    with pytest.raises(ValueError, match=r"model\.layers\.1 has the hook or forward function .*lambda"):
        fingerprint(model, tokenizer)


def test_running_the_model_changes_nothing(make_llama, tokenizer) -> None:
    model = make_llama()
    kept = Fingerprint(model, tokenizer)
    before = kept.digest()
    model.generate(torch.tensor([[3, 4, 5]]), max_new_tokens=3, do_sample=False)
    tokenizer(["a", "longer text"], padding=True, truncation=True, max_length=5)
    assert kept.digest() == before
    assert fingerprint(model, tokenizer) == before


def test_inference_tensors_can_be_digested(tokenizer) -> None:
    with torch.inference_mode():
        model = LlamaForCausalLM(TINY)
    assert len(Fingerprint(model, tokenizer).digest()) == 32


def with_state(change: Callable[[dict[str, Any]], None]) -> PreTrainedTokenizerFast:
    state = json.loads(demo_tokenizer().backend_tokenizer.to_str())
    change(state)
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(state)), bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )


def swap_two_entries(state: dict[str, Any]) -> None:
    vocabulary = state["model"]["vocab"]
    first, second = list(vocabulary)[500:502]
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]


def test_every_part_of_a_tokenizer_counts(make_llama) -> None:
    added = demo_tokenizer()
    added.add_tokens(["<new>"])
    special = demo_tokenizer()
    special.add_special_tokens({"bos_token": "</s>"})
    tokenizers = [
        with_state(lambda state: None),
        with_state(swap_two_entries),
        with_state(lambda state: state["model"]["merges"].pop()),
        with_state(lambda state: state["pre_tokenizer"].update(add_prefix_space=True)),
        added,
        special,
    ]
    model = make_llama()
    assert len({fingerprint(model, tokenizer) for tokenizer in tokenizers}) == len(tokenizers)
    assert fingerprint(model, tokenizers[0]) == fingerprint(model, demo_tokenizer())


def test_a_changed_tokenizer_is_noticed(make_llama) -> None:
    own = demo_tokenizer()
    kept = Fingerprint(make_llama(), own)
    before = kept.digest()
    own.add_tokens(["<new>"])
    assert kept.digest() != before


@pytest.mark.parametrize("part", ["normalizer", "pre_tokenizer", "post_processor"])
def test_a_stage_of_a_tokenizer_changed_in_place_is_noticed(make_llama, part) -> None:
    stages = {
        "normalizer": normalizers.Lowercase(),
        "pre_tokenizer": pre_tokenizers.ByteLevel(add_prefix_space=True),
        "post_processor": processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)]),
    }
    own, model = demo_tokenizer(), make_llama()
    kept = Fingerprint(model, own)
    before = kept.digest()
    setattr(own.backend_tokenizer, part, stages[part])
    assert kept.digest() == fingerprint(model, own) != before


def test_a_model_without_data_is_refused(tokenizer) -> None:
    with torch.device("meta"):
        model = LlamaForCausalLM(TINY)
    with pytest.raises(ValueError, match="has no data: load the model"):
        fingerprint(model, tokenizer)
    with pytest.raises(ValueError, match="has no data: load the model"):
        Fingerprint(model, tokenizer).digest()
