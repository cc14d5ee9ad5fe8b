import subprocess
import sys

import skymemory


def test_torch_is_loaded_only_by_what_needs_it() -> None:
    program = (
        "import sys, skymemory, skymemory.cli, skymemory.store.sky_store, skymemory.prompt.block_keys\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)\n"
        "assert skymemory.KVCManager.__module__ == 'skymemory.prompt.manager'\n"
        "assert 'torch' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_name_of_the_package_is_there() -> None:
    assert [name for name in skymemory.__all__ if getattr(skymemory, name).__name__ != name] == []
