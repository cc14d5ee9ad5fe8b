#!/usr/bin/env python3
"""Train a small Llama on the task of seams.py: its answers need attention across segments.

usage: tools/train_seams.py --out FOLDER [--layers 8] [--device cuda] [--seconds 330 | --steps 4000] [--seed 0]
       tools/train_seams.py --out FOLDER --start FOLDER --still 3 [--device cuda] [--seconds 200 | --steps 1500]

Writes model.safetensors and config.json, now and then and at the end. Writes lineage.json at the end: how the weights came about,
their hash, and the share of right answers by kind of question and length of the context, with full attention and with segments
computed apart.

The second form goes on from weights, at the last level. With --still, tokens that need no other segment are to have the same
hidden states whether segments are computed apart or not. So few tokens deviate, as CacheBlend found it in large models.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM

from seams import ANSWER_TOKENS, BOS, END, KINDS, NO_SUBJECT, PAD, REFERENCE, UNMARKED, VOCABULARY, Shape, make_prompts
from seams_quality import SHAPES, Sequences, logits_and_states, make_sequences, measure, right_answers

# Prompts become longer step by step: a level begins when the one before is answered well, or has lasted long.
LEVELS: Final = (
    (Shape(1, 12, 2), Shape(2, 6, 1), Shape(2, 8, 1)),
    (Shape(2, 8, 1), Shape(2, 10, 1), Shape(3, 10, 1)),
    (Shape(2, 12, 2), Shape(3, 16, 2), Shape(2, 20, 3)),
    (Shape(2, 24, 3), Shape(3, 24, 3), Shape(4, 20, 2)),
    (Shape(2, 32, 3), Shape(3, 32, 3), Shape(4, 32, 3)),
    (Shape(2, 32, 3), Shape(3, 32, 3), Shape(4, 32, 3), Shape(6, 32, 3), Shape(3, 48, 4)),
)
ENOUGH: Final = 0.8
LONGEST: Final = 0.125  # share of the training that a level lasts at most
WINDOW: Final = 30  # steps over which the answers of a level are judged
QUESTIONS: Final = (*KINDS, *KINDS, *KINDS, *KINDS)

ADAM_RATE: Final = 3e-3
PROBES: Final = 0.5  # share of their loss at first; it falls to none
WARM_UP: Final = 50
COOL_DOWN: Final = 0.3  # share of the training in which the rates fall
CHECKPOINT_SECONDS: Final = 60.0
REPORT_STEPS: Final = 50
NOTED_STEPS: Final = 10
EVALUATION_SEED: Final = 1_000_003


def make_model(layers: int, seed: int) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=128,
            intermediate_size=192,
            num_hidden_layers=layers,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=64,
            max_position_embeddings=1024,
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
            tie_word_embeddings=False,
            pad_token_id=PAD,
            bos_token_id=BOS,
            eos_token_id=END,
            attn_implementation="sdpa",
        )
    )
    # Muon makes layers tell much from the beginning; what the tokens are must not drown in it.
    nn.init.normal_(model.model.embed_tokens.weight, std=0.5)
    return model


def make_optimizers(model: LlamaForCausalLM, probes: nn.Module, rate: float) -> list[tuple[torch.optim.Optimizer, float]]:
    """Return Muon for matrices and AdamW for all else, each with its highest rate."""
    inner = [value for value in model.model.layers.parameters() if value.ndim == 2]
    rest = [value for value in model.parameters() if all(value is not other for other in inner)] + list(probes.parameters())
    muon = torch.optim.Muon(inner, lr=rate, momentum=0.95, weight_decay=0.01, adjust_lr_fn="original")
    adam = torch.optim.AdamW(rest, lr=ADAM_RATE, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    return [(muon, rate), (adam, ADAM_RATE)]


class Probes(nn.Module):
    """Tell from what the first layer makes of a token whose subject and which attribute it tells of.

    Their loss shows a model early what a token must know. Only tokens of facts and references are to know it, so that little of a
    segment depends on others. The probes are not part of the model.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.subject = nn.Linear(width, NO_SUBJECT + 1, bias=False)
        self.attribute = nn.Linear(width, REFERENCE + 1, bias=False)

    def loss(self, states: Tensor, marks: Tensor) -> Tensor:
        """Return the loss over all marked tokens."""
        states = functional.rms_norm(states, states.shape[-1:])
        losses = [
            functional.cross_entropy(probe(states).float().flatten(0, 1), marks[..., number].flatten(), ignore_index=UNMARKED)
            for number, probe in enumerate((self.subject, self.attribute))
        ]
        return losses[0] + losses[1]


def unrest(together: tuple[Tensor, ...], apart: tuple[Tensor, ...], sequences: Sequences) -> Tensor:
    """Return how much hidden states differ between segments together and apart, over tokens that need no other segment.

    These are all tokens of segments but the facts and references of second segments. The input of each layer counts, but that
    of the first, which is the tokens themselves.
    """
    second = (sequences.blocks > 0) & (sequences.blocks % 2 == 0)
    needs = second & (sequences.marks[..., 0] != NO_SUBJECT)
    still = (~needs & (sequences.blocks > 0)).float()
    layers = []
    for pair in zip(together[1:-1], apart[1:-1], strict=True):
        one, other = (functional.rms_norm(states, states.shape[-1:]).float() for states in pair)
        layers.append(((one - other).square().mean(-1) * still).sum() / still.sum())
    return torch.stack(layers).mean()


class Levels:
    """Choose the shape of a step, and go up one level when the present one is answered well."""

    def __init__(self, seed: int, level: int = 0) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self.level = level
        self._begun = 0.0
        self._right: deque[float] = deque(maxlen=WINDOW)

    def choose(self) -> tuple[Shape, bool]:
        """Return a shape, and whether it belongs to the present level; one step in ten goes back."""
        back = self.level > 0 and float(torch.rand((), generator=self._generator)) < 0.1
        shapes = LEVELS[self.level - back]
        return shapes[int(torch.randint(len(shapes), (), generator=self._generator))], not back

    def note(self, right: float, spent: float) -> None:
        """Note the share of right answers of a step of the present level, and what share of the training is spent."""
        self._right.append(right)
        enough = len(self._right) == WINDOW and self.share > ENOUGH
        if (enough or spent > self._begun + LONGEST) and self.level < len(LEVELS) - 1:
            self.level += 1
            self._begun = spent
            self._right.clear()

    @property
    def share(self) -> float:
        """Share of right answers at the present level."""
        return sum(self._right) / max(1, len(self._right))


def spent(options: argparse.Namespace) -> Iterator[float]:
    """Yield the spent share of the steps or seconds before each step, until all is spent."""
    begin, step = time.monotonic(), 0
    while True:
        share = step / options.steps if options.steps else (time.monotonic() - begin) / options.seconds
        if share >= 1:
            return
        yield share
        step += 1


def train(model: LlamaForCausalLM, options: argparse.Namespace) -> dict[str, Any]:
    """Train, and return what the lineage tells of it."""
    generator = torch.Generator(options.device).manual_seed(options.seed)
    levels = Levels(options.seed, len(LEVELS) - 1 if options.start else 0)
    probes = Probes(model.config.hidden_size).to(options.device)
    optimizers = make_optimizers(model, probes, options.rate)
    weight = torch.tensor([1.0] * (ANSWER_TOKENS - 1) + [0.1], device=options.device)  # END is easy
    begin = saved = time.monotonic()
    steps = tokens = 0
    noted: list[tuple[Tensor, bool]] = []
    for share in spent(options):
        rate = min(1.0, steps / WARM_UP, (1 - share) / COOL_DOWN)
        for optimizer, highest in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = highest * rate
        shape, of_level = levels.choose()
        questions = len(QUESTIONS) * (ANSWER_TOKENS + 3)
        count = max(1, options.batch_tokens // (shape.context_tokens + questions))
        sequences = make_sequences(make_prompts(shape, count, generator), QUESTIONS, generator)
        with torch.autocast(options.device, torch.bfloat16):
            logits, states = logits_and_states(model, sequences)
            probed = probes.loss(states[1], sequences.marks)
            if options.still:
                with torch.no_grad():
                    apart = logits_and_states(model, sequences, apart=True)[1]
                helped = options.still * unrest(states, apart, sequences)
            else:
                helped = PROBES * (1 - share) * probed
        losses = functional.cross_entropy(logits.float().flatten(0, 2), sequences.answers.flatten(), reduction="none")
        loss = (losses.view(sequences.answers.shape) * weight).mean()
        (loss + helped).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer, _ in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        steps += 1
        tokens += sequences.tokens.numel()
        noted.append((right_answers(logits, sequences.answers).float().mean(0), of_level))
        if len(noted) == NOTED_STEPS:  # a device computes ahead; asking after each step would hold it up
            rights = torch.stack([right for right, _ in noted]).view(len(noted), -1, len(KINDS)).mean(1).tolist()
            for right, (_, of_level) in zip(rights, noted, strict=True):
                if of_level:
                    levels.note(sum(right) / len(right), share)
            noted.clear()
        if steps % REPORT_STEPS == 0 or steps == NOTED_STEPS:
            kinds = ", ".join(f"{kind} {value:.2f}" for kind, value in zip(KINDS, rights[-1], strict=True))
            elapsed = time.monotonic() - begin
            print(
                f"{elapsed:5.0f} s  step {steps}  level {levels.level}  {tokens / 1e6:.1f} M tokens  "
                f"loss {loss.item():.3f} + {helped.item():.3f}  right {levels.share:.3f} ({kinds})  rate {rate:.2f}",
                flush=True,
            )
        if time.monotonic() - saved > CHECKPOINT_SECONDS:
            save(model, options.out)
            saved = time.monotonic()
    return {"steps": steps, "tokens": tokens, "seconds": round(time.monotonic() - begin), "level": levels.level}


def save(model: LlamaForCausalLM, folder: Path) -> str:
    """Write the weights as bfloat16, and return their SHA-256."""
    copy = LlamaForCausalLM(model.config)
    copy.load_state_dict(model.state_dict())
    copy.to(torch.bfloat16).save_pretrained(folder)
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def evaluate(folder: Path, device: str, prompts: int) -> dict[str, dict[str, dict[str, float]]]:
    """Measure the weights as they were written, computed in float32; return shares by context, way and kind."""
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).to(device).eval()
    table: dict[str, dict[str, dict[str, float]]] = {}
    print("context  attention  " + "  ".join(KINDS))
    for shape in SHAPES:
        row = table[str(shape.context_tokens)] = {}
        for way in ("full", "apart"):
            row[way] = measure(model, shape, apart=way == "apart", seed=EVALUATION_SEED, prompts=prompts, device=device)
            shares = "  ".join(f"{row[way][kind]:{len(kind)}.3f}" for kind in KINDS)
            print(f"{shape.context_tokens:7}  {way:9}  {shares}", flush=True)
    return table


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the weights and lineage.json")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--start", type=Path, help="folder of weights to go on from")
    parser.add_argument("--still", type=float, default=0.0, help="weight of what tokens deviate that need no other segment")
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument("--seconds", type=float, help="length of the training; the evaluation comes on top")
    length.add_argument("--steps", type=int, help="length of the training")
    parser.add_argument("--batch-tokens", type=int, help="tokens of a step; 4,096 on a CPU, 65,536 on a GPU")
    parser.add_argument("--prompts", type=int, default=200, help="prompts of each line of the table")
    parser.add_argument("--rate", type=float, default=0.01, help="highest learning rate of matrices")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(words)
    options.batch_tokens = options.batch_tokens or {"cpu": 4_096, "cuda": 65_536}[options.device]

    transformers.utils.logging.disable_progress_bar()
    torch.backends.cuda.enable_cudnn_sdp(False)  # cuDNN would plan anew for each length
    options.out.mkdir(parents=True, exist_ok=True)
    model = make_model(options.layers, options.seed)
    before = None
    if options.start:
        model.load_state_dict(LlamaForCausalLM.from_pretrained(options.start, dtype=torch.float32).state_dict())
        before = json.loads((options.start / "lineage.json").read_text())
        del before["right"]
    model.to(options.device)
    parameters = sum(value.numel() for value in model.parameters())
    device = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    print(f"{options.layers} layers, {parameters:,} parameters, on {device}", flush=True)
    training = train(model, options)
    lineage = {
        "tool": "tools/train_seams.py",
        "seed": options.seed,
        "start": before,
        "still": options.still,
        "layers": options.layers,
        "parameters": parameters,
        "rate": options.rate,
        "batch_tokens": options.batch_tokens,
        **training,
        "device": device,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "sha256": save(model, options.out),
        "right": evaluate(options.out, options.device, options.prompts),
    }
    (options.out / "lineage.json").write_text(json.dumps(lineage, indent=2) + "\n")
    return 0 if all(math.isfinite(value) for value in model.state_dict()["model.norm.weight"].tolist()) else 1


if __name__ == "__main__":
    sys.exit(main())
