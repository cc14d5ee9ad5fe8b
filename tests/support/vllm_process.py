"""A vLLM engine as a process of its own, controlled by JSON lines on its standard input; answers go to a descriptor.

usage: vllm_process.py DESCRIPTOR SETTINGS       arguments of `LLM` as JSON
"""

import json
import os
import sys
import time


def main() -> None:
    from vllm import LLM

    llm = LLM(**json.loads(sys.argv[2]))
    with os.fdopen(int(sys.argv[1]), "w", encoding="utf-8") as answers:
        print("{}", file=answers, flush=True)
        for line in sys.stdin:
            asked = json.loads(line)
            print(json.dumps(COMMANDS[asked.pop("command")](llm, **asked)), file=answers, flush=True)


def generate(llm, prompts, tokens, salts, adapter):
    """Return the greedy tokens of each prompt, the number of its tokens that were not computed, and the time for all."""
    from vllm import SamplingParams
    from vllm.inputs import TokensPrompt

    asked = [
        TokensPrompt(prompt_token_ids=ids, **({"cache_salt": salt} if salt else {}))
        for ids, salt in zip(prompts, salts, strict=True)
    ]
    start = time.perf_counter()
    sampling = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True)
    outputs = llm.generate(asked, sampling, use_tqdm=False, lora_request=adapter and lora_request(adapter))
    return {
        "tokens": [list(output.outputs[0].token_ids) for output in outputs],
        "cached": [output.num_cached_tokens for output in outputs],
        "seconds": time.perf_counter() - start,
    }


def lora_request(folder):
    """Return the request for the adapter in a folder, whose name it has; its number is that of the name."""
    from vllm.lora.request import LoRARequest

    name = os.path.basename(folder)
    return LoRARequest(name, 1 + int.from_bytes(name.encode()) % 1_000_003, folder)


def load(llm, adapter):
    """Load an adapter as `--lora-modules` and `/v1/load_lora_adapter` do, ahead of requests."""
    return {"done": llm.llm_engine.add_lora(lora_request(adapter))}


def abort(llm, prompt, steps):
    """Give up a request after some steps of the engine."""
    from vllm import SamplingParams
    from vllm.inputs import TokensPrompt

    engine = llm.llm_engine
    engine.add_request("given-up", TokensPrompt(prompt_token_ids=prompt), SamplingParams(temperature=0, max_tokens=100))
    for _ in range(steps):
        engine.step()
    engine.abort_request(["given-up"])
    while engine.has_unfinished_requests():
        engine.step()
    return {}


def forget(llm):
    """Empty vLLM's own cache, not the connector's."""
    return {"done": llm.reset_prefix_cache()}


def metrics(llm):
    """Return the counters of the connector, and those of vLLM that concern it."""
    wanted = ("vllm:skymemory_", "vllm:external_prefix_cache", "vllm:num_preemptions")
    return {
        f"{one.name.removeprefix('vllm:')}{one.labels.get('reason', '')}": one.value if hasattr(one, "value") else one.count
        for one in llm.get_metrics()
        if one.name.startswith(wanted)
    }


COMMANDS = {"generate": generate, "load": load, "abort": abort, "forget": forget, "metrics": metrics}


if __name__ == "__main__":  # vLLM starts processes that import this file
    main()
