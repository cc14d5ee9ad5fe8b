"""Outlines of all commands, for help and completion. Made by tools/gen_outlines.py from the commands; do not edit."""

from typing import Any, Final

OUTLINES: Final[dict[str, Any]] = {
    "up": {
        "help": "Start the constellation.",
        "parameters": [
            {"names": ["--docker"], "help": "As containers instead of local processes.", "flag": True},
            {"names": ["--constellation"], "help": "Constellation file. Default: constellation.toml of this folder if there is one, else the paper's constellation.", "path": "file"},
        ],
    },
    "down": {
        "help": "Stop the constellation and lose what it holds.",
        "parameters": [],
    },
    "status": {
        "help": "Show what the satellites hold and have done, as a grid of planes and slots.",
        "parameters": [
            {"names": ["--links"], "help": "List every link: delays requested and measured, packets, drops.", "flag": True},
            {"names": ["--check"], "help": "Print the window's state alone. Exit status: 0 whole, 1 degraded or gone, 4 no satellite can be asked.", "flag": True},
            {"names": ["--watch"], "help": "Look again every SECONDS, 2 by default, until Ctrl-C. With --json one line for each look."},
            {"names": ["--constellation"], "help": "File of the constellation to use, whoever runs it. Default: the one that `skymem up` started.", "path": "file"},
            {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
        ],
    },
    "doctor": {
        "help": "Look for what is wrong on this machine, and say what to do.",
        "parameters": [
            {"names": ["--constellation"], "help": "File of the constellation to use, whoever runs it. Default: the one that `skymem up` started.", "path": "file"},
            {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
        ],
    },
    "kill": {
        "help": "End satellite PLANE SLOT at once, without warning.",
        "parameters": [
            {"names": ["plane"]},
            {"names": ["slot"]},
            {"names": ["--constellation"], "help": "File of the constellation to use, whoever runs it. Default: the one that `skymem up` started.", "path": "file"},
        ],
    },
    "restart": {
        "help": "Start satellite PLANE SLOT again, with an empty store.",
        "parameters": [
            {"names": ["plane"]},
            {"names": ["slot"]},
            {"names": ["--constellation"], "help": "File of the constellation to use, whoever runs it. Default: the one that `skymem up` started.", "path": "file"},
        ],
    },
    "replay": {
        "help": "Let the sky turn as in FILE.",
        "parameters": [
            {"names": ["file"], "path": "file"},
            {"names": ["--speed"], "help": "Speed as a multiple of real time, up to 1000."},
            {"names": ["--from"], "help": "Begin in the schedule; UTC."},
            {"names": ["--hours"], "help": "Hours of the schedule to play. Default: to its end."},
            {"names": ["--by"], "help": "Who begins a handover: the satellites, by a schedule on board, or the ground, by command.", "choices": ["schedule", "command"]},
            {"names": ["--constellation"], "help": "File of the constellation to use, whoever runs it. Default: the one that `skymem up` started.", "path": "file"},
            {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
        ],
    },
    "compose": {
        "help": "Print the Compose file of the constellation: one container for each satellite, (p, s) at 198.18.p.s.",
        "parameters": [
            {"names": ["--constellation"], "help": "Constellation file. Default: constellation.toml of this folder if there is one, else the paper's constellation.", "path": "file"},
            {"names": ["--swarm"], "help": "A stack for Docker Swarm: planes on machines.", "flag": True},
            {"names": ["--kubernetes"], "help": "Manifests for Kubernetes: the same.", "flag": True},
            {"names": ["-o", "--output"], "help": "File to write. Default: -, standard output.", "path": "file"},
        ],
    },
    "put": {
        "help": "Store FILE (- is standard input) under KEY, any text.",
        "parameters": [
            {"names": ["key"]},
            {"names": ["file"], "path": "file"},
            {"names": ["--constellation"], "help": "File of the constellation to use, whoever runs it. Default: the one that `skymem up` started.", "path": "file"},
            {"names": ["--tenant-secret-file"], "help": "File of the secret that hides names and values. Default: this user's for that constellation, made when first needed.", "path": "file"},
            {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
        ],
    },
    "get": {
        "help": "Write the value of KEY to FILE (- is standard output).",
        "parameters": [
            {"names": ["key"]},
            {"names": ["file"], "path": "file"},
            {"names": ["--constellation"], "help": "File of the constellation to use, whoever runs it. Default: the one that `skymem up` started.", "path": "file"},
            {"names": ["--tenant-secret-file"], "help": "File of the secret that hides names and values. Default: this user's for that constellation, made when first needed.", "path": "file"},
            {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
        ],
    },
    "del": {
        "help": "Delete the value of KEY.",
        "parameters": [
            {"names": ["key"]},
            {"names": ["--constellation"], "help": "File of the constellation to use, whoever runs it. Default: the one that `skymem up` started.", "path": "file"},
            {"names": ["--tenant-secret-file"], "help": "File of the secret that hides names and values. Default: this user's for that constellation, made when first needed.", "path": "file"},
            {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
        ],
    },
    "prefetch": {
        "help": "Prefetch values.",
        "parameters": [
            {"names": ["keys"], "many": True},
            {"names": ["--at"], "help": "ISO 8601 time (local if it names no zone), or +SECONDS from now."},
            {"names": ["--constellation"], "help": "File of the constellation to use, whoever runs it. Default: the one that `skymem up` started.", "path": "file"},
            {"names": ["--tenant-secret-file"], "help": "File of the secret that hides names and values. Default: this user's for that constellation, made when first needed.", "path": "file"},
            {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
        ],
    },
    "ls": {
        "help": "List what this host knows of what it has in the sky: values by name, segments, and models whose prompts are cached.",
        "parameters": [
            {"names": ["--constellation"], "help": "File of the constellation to use, whoever runs it. Default: the one that `skymem up` started.", "path": "file"},
            {"names": ["--tenant-secret-file"], "help": "File of the secret that hides names and values. Default: this user's for that constellation, made when first needed.", "path": "file"},
            {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
        ],
    },
    "demo": {
        "help": "Run a prompt without and with the cache, and compare.",
        "parameters": [
            {"names": ["--model"], "help": "Llama-family model: its folder, or its name on the hub. Default: 100 M random weights, made here."},
            {"names": ["--prompt-file"], "help": "UTF-8 text. Default: a document of more than 2,000 tokens that is shipped.", "path": "file"},
            {"names": ["--codec"], "help": "Codec that packs the tensors; all but raw lose precision.", "choices": ["raw", "int8", "int4", "int4g16", "int4g32", "quanto", "hqq"]},
            {"names": ["--tokens"], "help": "Tokens to generate."},
            {"names": ["--constellation"], "help": "Constellation file. Default: constellation.toml of this folder if there is one, else the paper's constellation.", "path": "file"},
            {"names": ["--tenant-secret-file"], "help": "File of the secret that hides names and values. Default: this user's for that constellation, made when first needed.", "path": "file"},
            {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
        ],
    },
    "serve": {
        "help": "Serve MODEL over HTTP as OpenAI does, with its prompts cached in the sky.",
        "parameters": [
            {"names": ["model"]},
            {"names": ["--host"], "help": "Address to listen at."},
            {"names": ["--port"], "help": "Port to listen at; 0 takes a free one."},
            {"names": ["--served-model-name"], "help": "The model's name for clients. Default: MODEL."},
            {"names": ["--api-key"], "help": "Key that clients must send. Other users of this machine can see options: rather set the variable."},
            {"names": ["--api-keys"], "help": "File of keys, made by `skymem serve-keys`: prompts of one key are never found by another's.", "path": "file"},
            {"names": ["--trusted-proxy"], "help": "Address or network of proxies that tell their clients' addresses in X-Forwarded-For, such as 10.0.0.0/8; repeatable. Default: none, and the header is not read.", "many": True},
            {"names": ["--max-queue"], "help": "Most requests that wait for the model; more are refused with status 429."},
            {"names": ["--max-batch"], "help": "Most answers generated together; each takes the memory of its prompt's keys and values."},
            {"names": ["--max-model-len"], "help": "Most tokens of prompt and answer together. Default: as many as the model was made for."},
            {"names": ["--dtype"], "help": "Type of the weights; auto: as the model was saved.", "choices": ["auto", "float32", "float16", "bfloat16"]},
            {"names": ["--device"], "help": "Where the model runs, in torch's words: cpu, cuda, cuda:1, mps. Default: cuda if there is one, else cpu."},
            {"names": ["--link-strategy"], "help": "How segments are linked: auto takes what the gate allows for this model and else computes them; exact, naive, lego:K, lego0, blend:R and random:R are taken without proof."},
            {"names": ["--segment-separator"], "help": "Text around the segments of a prompt of /v1/completions; the model does not see it. Default: there are none."},
            {"names": ["--constellation"], "help": "File of the constellation to use. Default: the one that `skymem up` starts, now or later.", "path": "file"},
            {"names": ["--tenant-secret-file"], "help": "File of the secret that hides names and values. Default: this user's for that constellation, made when first needed.", "path": "file"},
            {"names": ["--log-level"], "help": "Least level that is logged, on standard error.", "choices": ["debug", "info", "warning", "error"]},
            {"names": ["--log-json"], "help": "Log one JSON object in each line.", "flag": True},
        ],
    },
    "serve-keys": {
        "help": "Add, list and remove API keys of `skymem serve --api-keys FILE`.",
        "parameters": [],
        "commands": {
            "add": {
                "help": "Make a key for NAME and show it, once: FILE, which only you may read, has its digest.",
                "parameters": [
                    {"names": ["file"], "path": "file"},
                    {"names": ["name"]},
                    {"names": ["--operator"], "help": "With it /metrics has the numbers of all keys, and not its own.", "flag": True},
                ],
            },
            "list": {
                "help": "Show the names in FILE.",
                "parameters": [
                    {"names": ["file"], "path": "file"},
                ],
            },
            "remove": {
                "help": "Take the key of NAME out of FILE.",
                "parameters": [
                    {"names": ["file"], "path": "file"},
                    {"names": ["name"]},
                ],
            },
        },
    },
    "segment": {
        "help": "Add, list and remove segments: texts whose keys and values any prompt of the model can use, wherever they stand in it.",
        "parameters": [],
        "commands": {
            "add": {
                "help": "Compute the segment of FILE (- is standard input), UTF-8 text, and store it.",
                "parameters": [
                    {"names": ["file"], "path": "file"},
                    {"names": ["--text"], "help": "The text itself, instead of FILE."},
                    {"names": ["--model"], "help": "Model that computes it: its folder, or its name on the hub."},
                    {"names": ["--ttl"], "help": "Seconds until the segment expires. Default: never."},
                    {"names": ["--sinks"], "help": "Tokens BOS to compute it behind: 4 for the strategy lego0, else 0."},
                    {"names": ["--name"], "help": "A name for people."},
                    {"names": ["--dtype"], "help": "Type of the weights; auto: as the model was saved.", "choices": ["auto", "float32", "float16", "bfloat16"]},
                    {"names": ["--device"], "help": "Where the model runs, in torch's words: cpu, cuda, cuda:1, mps. Default: cuda, else cpu."},
                    {"names": ["--constellation"], "help": "File of the constellation to use, whoever runs it. Default: the one that `skymem up` started.", "path": "file"},
                    {"names": ["--tenant-secret-file"], "help": "File of the secret that hides names and values. Default: this user's for that constellation, made when first needed.", "path": "file"},
                    {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
                ],
            },
            "list": {
                "help": "Show the segments that this host has added and that have not expired.",
                "parameters": [
                    {"names": ["--constellation"], "help": "File of the constellation to use, whoever runs it. Default: the one that `skymem up` started.", "path": "file"},
                    {"names": ["--tenant-secret-file"], "help": "File of the secret that hides names and values. Default: this user's for that constellation, made when first needed.", "path": "file"},
                    {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
                ],
            },
            "rm": {
                "help": "Purge segments for all hosts.",
                "parameters": [
                    {"names": ["ids"], "many": True},
                    {"names": ["--constellation"], "help": "File of the constellation to use, whoever runs it. Default: the one that `skymem up` started.", "path": "file"},
                    {"names": ["--tenant-secret-file"], "help": "File of the secret that hides names and values. Default: this user's for that constellation, made when first needed.", "path": "file"},
                    {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
                ],
            },
        },
    },
    "pic": {
        "help": "Find out whether a model keeps its answers where segments are linked.",
        "parameters": [],
        "commands": {
            "check": {
                "help": "Check on your prompts which strategies keep the answers of MODEL, a folder or a name on the hub, as they are.",
                "parameters": [
                    {"names": ["model"]},
                    {"names": ["--prompts"], "help": "File of 200 prompts or more, each a line: a JSON list of texts and segments {\"segment\": text}. The last is a text.", "path": "file"},
                    {"names": ["--strategies"], "help": "Strategies with commas between them. Default: all that `auto` chooses from."},
                    {"names": ["--all"], "help": "Run all prompts also with strategies that cannot open any more.", "flag": True},
                    {"names": ["--dtype"], "help": "Type of the weights; auto: as the model was saved.", "choices": ["auto", "float32", "float16", "bfloat16"]},
                    {"names": ["--device"], "help": "Where the model runs, in torch's words: cpu, cuda, cuda:1, mps. Default: cuda, else cpu."},
                    {"names": ["--constellation"], "help": "File of the constellation to use, whoever runs it. Default: the one that `skymem up` started.", "path": "file"},
                    {"names": ["--tenant-secret-file"], "help": "File of the secret that hides names and values. Default: this user's for that constellation, made when first needed.", "path": "file"},
                    {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
                ],
            },
        },
    },
    "size": {
        "help": "Tell how many tokens of a model the constellation holds.",
        "parameters": [
            {"names": ["model"], "path": "file"},
            {"names": ["--constellation"], "help": "Constellation file. Default: constellation.toml of this folder if there is one, else the paper's constellation.", "path": "file"},
            {"names": ["--block-tokens"], "help": "Tokens of a block. Default: the file's cache.block_tokens."},
            {"names": ["--codec"], "help": "Codec of the stored values. Default: the file's cache.codec.", "choices": ["raw", "int8", "int4", "int4g16", "int4g32"]},
            {"names": ["--dtype"], "help": "Type of the cache, if it is not the model's own (vLLM's --kv-cache-dtype): bfloat16, fp8, ..."},
            {"names": ["--tokens"], "help": "Tokens to hold: say which store_mib they need."},
            {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
        ],
    },
    "agent": {
        "help": "Run this host's agent: it owns the links to the sky, for engines, Redis clients and browsers.",
        "parameters": [
            {"names": ["--config"], "help": "AgentSettings in TOML, named as the flags with underscores.", "path": "file"},
            {"names": ["--constellation"], "help": "Constellation file. Default: the constellation that `skymem up` started on this machine, now or later.", "path": "file"},
            {"names": ["--replay"], "help": "State folder whose `skymem replay` the window follows. Default: this user's.", "path": "folder"},
            {"names": ["--socket"], "help": "Unix socket of engines. Default: agent.sock in the state folder.", "path": "file"},
            {"names": ["--resp-port"], "help": "Port of Redis clients. Default: they are not served."},
            {"names": ["--lmcache-port"], "help": "Port of LMCache 0.5's client. Default: it is not served."},
            {"names": ["--resp-host"], "help": "Address of these two ports."},
            {"names": ["--resp-password"], "help": "Password of the user `default` on both (AUTH). Flags are visible to all users of this machine."},
            {"names": ["--resp-users"], "help": "File of further users, each with the values of one tenant; made by `skymem resp-users`.", "path": "file"},
            {"names": ["--tenant-secret-file"], "help": "File of the secret that hides names and values. Default: this user's for that constellation, made when first needed.", "path": "file"},
            {"names": ["--http-port"], "help": "Port of page, health and metrics. Default: none."},
            {"names": ["--http-host"], "help": "Address of that port."},
            {"names": ["--log-level"], "help": "Least level that is logged, on standard error.", "choices": ["debug", "info", "warning", "error"]},
            {"names": ["--log-json"], "help": "Log one JSON object in each line.", "flag": True},
        ],
    },
    "resp-users": {
        "help": "Add, list and remove users of `skymem agent --resp-users FILE`.",
        "parameters": [],
        "commands": {
            "add": {
                "help": "Make a password for NAME and show it, once: FILE, which only you may read, has its digest.",
                "parameters": [
                    {"names": ["file"], "path": "file"},
                    {"names": ["name"]},
                    {"names": ["--tenant"], "help": "Number of the tenant whose values it sees."},
                    {"names": ["--tenant-secret-file"], "help": "File with the tenant's secret, seen from the folder of FILE."},
                    {"names": ["--read-only"], "help": "The user may not change values.", "flag": True},
                ],
            },
            "list": {
                "help": "Show the users in FILE, each with its tenant.",
                "parameters": [
                    {"names": ["file"], "path": "file"},
                ],
            },
            "remove": {
                "help": "Take NAME out of FILE.",
                "parameters": [
                    {"names": ["file"], "path": "file"},
                    {"names": ["name"]},
                ],
            },
        },
    },
    "keys": {
        "help": "Keys of the links: the mission's, and those of its hosts and satellites.",
        "parameters": [],
        "commands": {
            "new": {
                "help": "Begin a mission in a new FOLDER, with a first host; or, in the FOLDER of a mission, make the keyring of a further host.",
                "parameters": [
                    {"names": ["folder"], "path": "file"},
                    {"names": ["--planes"], "help": "Planes of the constellation of a new mission."},
                    {"names": ["--slots"], "help": "Slots of each plane."},
                    {"names": ["--constellation"], "help": "Constellation file. Default: constellation.toml of this folder if there is one, else the paper's constellation.", "path": "file"},
                    {"names": ["--host"], "help": "Name of the host, 1 to 12 letters, digits, - and _. Default: host."},
                    {"names": ["--tenants"], "help": "Tenants that it may name: any, or up to 8 numbers. Default: cache.tenant for the first host, 0 for others."},
                    {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
                ],
            },
            "show": {
                "help": "Show what a keyring is, and no secret of it.",
                "parameters": [
                    {"names": ["file"], "path": "file"},
                    {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
                ],
            },
            "rotate": {
                "help": "Begin the next generation of keys: new files for all satellites and hosts, beside the old ones.",
                "parameters": [
                    {"names": ["path"], "path": "file"},
                    {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
                ],
            },
            "revoke": {
                "help": "Begin the next generation of keys without the host NAME.",
                "parameters": [
                    {"names": ["path"], "path": "file"},
                    {"names": ["name"]},
                    {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
                ],
            },
            "satellites": {
                "help": "Write the key files of satellites into a new FOLDER, PLANE-SLOT.key, one for each: a satellite gets no other.",
                "parameters": [
                    {"names": ["mission_path"], "path": "file"},
                    {"names": ["folder"], "path": "file"},
                    {"names": ["--satellite"], "help": "Satellite to write the file of; again for others. Default: all.", "many": True},
                    {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
                ],
            },
            "load": {
                "help": "Send satellites the keys of the mission's generation, wrapped under their valid ones.",
                "parameters": [
                    {"names": ["mission_path"], "path": "file"},
                    {"names": ["--old"], "help": "Generation of the keys that satellites have. Default: the one before that of the mission."},
                    {"names": ["--satellite"], "help": "Satellite to command; again for others. Default: all.", "many": True},
                    {"names": ["--constellation"], "help": "File of the constellation to use, whoever runs it. Default: the one that `skymem up` started.", "path": "file"},
                    {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
                ],
            },
            "activate": {
                "help": "Let satellites serve hosts with keyrings of the mission's generation, too.",
                "parameters": [
                    {"names": ["mission_path"], "path": "file"},
                    {"names": ["--old"], "help": "Generation of the keys that satellites have. Default: the one before that of the mission."},
                    {"names": ["--satellite"], "help": "Satellite to command; again for others. Default: all.", "many": True},
                    {"names": ["--constellation"], "help": "File of the constellation to use, whoever runs it. Default: the one that `skymem up` started.", "path": "file"},
                    {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
                ],
            },
            "forget": {
                "help": "Let satellites erase the keys of all generations before, and serve no host under them.",
                "parameters": [
                    {"names": ["mission_path"], "path": "file"},
                    {"names": ["--old"], "help": "Generation of the keys that satellites have. Default: the one before that of the mission."},
                    {"names": ["--satellite"], "help": "Satellite to command; again for others. Default: all.", "many": True},
                    {"names": ["--constellation"], "help": "File of the constellation to use, whoever runs it. Default: the one that `skymem up` started.", "path": "file"},
                    {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
                    {"names": ["--lost"], "help": "Satellite that is lost for good, and need not have the new keys; again for others.", "many": True},
                ],
            },
        },
    },
    "relay": {
        "help": "Connect mission control to satellite PLANE SLOT, as cFS's ci_lab and to_lab would, until Ctrl-C.",
        "parameters": [
            {"names": ["plane"]},
            {"names": ["slot"]},
            {"names": ["--commands"], "help": "Address that takes commands."},
            {"names": ["--telemetry"], "help": "Address that gets telemetry."},
            {"names": ["--constellation"], "help": "File of the constellation to use, whoever runs it. Default: the one that `skymem up` started.", "path": "file"},
            {"names": ["--log-level"], "help": "Least level that is logged, on standard error.", "choices": ["debug", "info", "warning", "error"]},
            {"names": ["--log-json"], "help": "Log one JSON object in each line.", "flag": True},
        ],
    },
    "tables": {
        "help": "Write the tables of a cFS mission, as C files for its defs folder.",
        "parameters": [
            {"names": ["constellation_file"], "path": "file"},
            {"names": ["schedule_file"], "path": "file"},
            {"names": ["-o", "--output"], "help": "Folder to write: defs.", "path": "folder"},
            {"names": ["--satellite"], "help": "Satellite to write tables for, as cpu1; again for cpu2 and so on. Default: all, plane by plane.", "many": True},
            {"names": ["--clock-epoch"], "help": "UTC at which the satellites' clock (CFE_TIME_GetTime) shows 0; earlier by the leap seconds that it counts."},
            {"names": ["--previous-keys"], "help": "Keep the generation of keys before the newest valid, too.", "flag": True},
            {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
        ],
    },
    "schedule": {
        "help": "Write when the sky over a site changes.",
        "parameters": [
            {"names": ["--walker"], "help": "Walker star or delta of P planes x S slots: star:5x19."},
            {"names": ["--tle"], "help": "Two-line elements of a constellation.", "path": "file"},
            {"names": ["--shell"], "help": "Inclination and altitude of the shell: 53.2,540. Default: the largest."},
            {"names": ["--strict"], "help": "Refuse elements with a bad line. Default: skip it and say so.", "flag": True},
            {"names": ["--altitude-km"], "help": "Altitude, 160 to 2000. Default: 550."},
            {"names": ["--inclination-deg"], "help": "Inclination, 0 to 180. Default: 87.9."},
            {"names": ["--phasing"], "help": "Phasing of the pattern: each plane is phasing/P slot ahead of the last. Default: 1."},
            {"names": ["--site"], "help": "Ground site in degrees, north and east positive: 52.5,13.4."},
            {"names": ["--min-elevation-deg"], "help": "Lowest elevation at which a satellite is in sight, 0 to 90."},
            {"names": ["--start"], "help": "Begin of the schedule in UTC, as in 2026-11-20T15:00:00Z. Default: now, or the time of the elements if they are old."},
            {"names": ["--hours"], "help": "Length of the schedule, up to 1000."},
            {"names": ["-o", "--output"], "help": "FILE.csv or FILE.jsonl to write; - prints CSV, or JSON lines with --json.", "path": "file"},
            {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
        ],
    },
    "twin": {
        "help": "Run a constellation in virtual time.",
        "parameters": [
            {"names": ["schedule_path"], "path": "file"},
            {"names": ["--seed"], "help": "Seed of the workload and the faults."},
            {"names": ["--faults"], "help": "File of faults to inject.", "path": "file"},
            {"names": ["--hours"], "help": "Hours of virtual time. Default: all of the schedule."},
            {"names": ["--constellation"], "help": "Constellation file. Default: constellation.toml of this folder if there is one, else the schedule's grid.", "path": "file"},
            {"names": ["--seeds"], "help": "Run N short runs from --seed on, instead of a schedule."},
            {"names": ["--lost"], "help": "With --seeds: each loses as many satellites of its window as hold parity, for good, and nothing else happens.", "flag": True},
            {"names": ["--violations-max"], "help": "Violations at which a run stops; 0: none. A livelock stops it in any case."},
            {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
        ],
    },
    "layout": {
        "help": "Show the servers of a block on the grid of planes and slots, and what the last rotation moved.",
        "parameters": [
            {"names": ["--layout"], "help": "Which.", "choices": ["rotation", "hop", "rotation_hop", "all_planes"]},
            {"names": ["--servers"], "help": "Satellites that share a block."},
            {"names": ["--parity"], "help": "Servers of these that hold parity. Default: 2; 0 with --published."},
            {"names": ["--planes"], "help": "Planes."},
            {"names": ["--slots"], "help": "Slots (satellites) in a plane."},
            {"names": ["--centre"], "help": "Satellite in the middle. Default: the grid's middle."},
            {"names": ["--rotations"], "help": "Slots that the sky has turned."},
            {"names": ["--published"], "help": "Show the mapping of the authors' simulator, faults included.", "flag": True},
            {"names": ["--compare"], "help": "Show what each layout survives and costs, instead of the grid.", "flag": True},
            {"names": ["-o", "--output"], "help": "Write a picture, .png, .svg or .pdf, or .csv; - prints CSV.", "path": "file"},
            {"names": ["--bare"], "help": "Leave out title and sentence: a paper has captions.", "flag": True},
            {"names": ["--width"], "help": "Width of the picture with its unit: 88mm, 3.5in, 252pt."},
            {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
        ],
    },
    "simulate": {
        "help": "Compute the paper's figures from its equations: one of --figure and --table.",
        "parameters": [
            {"names": ["--figure"], "help": "Figure of the paper to write as PNG, SVG, PDF and CSV.", "choices": ["1", "2", "13", "14", "15", "16"]},
            {"names": ["--table"], "help": "Print the latencies behind figure 16.", "flag": True},
            {"names": ["--published"], "help": "Use the mappings of the authors' simulator, faults included.", "flag": True},
            {"names": ["--packets"], "help": "Run each case of figure 16 in the twin as well; takes seconds.", "flag": True},
            {"names": ["--planes"], "help": "Planes."},
            {"names": ["--slots"], "help": "Slots in a plane."},
            {"names": ["--centre"], "help": "Satellite in the middle. Default: the grid's middle."},
            {"names": ["--servers"], "help": "Where not swept; a point where swept. Default: 81 or what fits."},
            {"names": ["--altitude-km"], "help": "Where not swept; a point where swept."},
            {"names": ["-o", "--output"], "help": "Folder for the figure (default: figures), or .csv file for the table; - prints CSV.", "path": "file"},
            {"names": ["--bare"], "help": "Leave out title and sentence: a paper has captions.", "flag": True},
            {"names": ["--width"], "help": "Width of the picture with its unit: 88mm, 3.5in, 252pt."},
            {"names": ["--json"], "help": "Print JSON: the rows of the table, or the names of the files.", "flag": True},
        ],
    },
    "bench": {
        "help": "Measure.",
        "parameters": [],
        "commands": {
            "gateway": {
                "help": "Run redis-benchmark on the agent's Redis gateway, beside redis-server.",
                "parameters": [
                    {"names": ["--constellation"], "help": "Constellation file. Default: constellation.toml of this folder if there is one, else the paper's constellation.", "path": "file"},
                    {"names": ["--scale"], "help": "Factor on all request counts."},
                    {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
                ],
            },
            "idle": {
                "help": "Measure processor time and memory of a constellation that does nothing.",
                "parameters": [
                    {"names": ["--constellation"], "help": "Constellation file. Default: constellation.toml of this folder if there is one, else the paper's constellation.", "path": "file"},
                    {"names": ["--seconds"], "help": "Seconds to measure."},
                    {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
                ],
            },
            "links": {
                "help": "PUT and GET 22 blocks of 3.1 MB over links with delay, jitter, loss and a cut.",
                "parameters": [
                    {"names": ["--constellation"], "help": "Constellation file. Default: constellation.toml of this folder if there is one, else the paper's constellation.", "path": "file"},
                    {"names": ["--rounds"], "help": "Measured rounds."},
                    {"names": ["--call-blocks"], "help": "Blocks in one call; the manager sends 5."},
                    {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
                ],
            },
            "parity": {
                "help": "Lose satellites and packets under gets: 12 servers, 2 of them with parity.",
                "parameters": [
                    {"names": ["--constellation"], "help": "Constellation file. Default: constellation.toml of this folder if there is one, else the paper's constellation.", "path": "file"},
                    {"names": ["--gets"], "help": "Gets for each rate of loss."},
                    {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
                ],
            },
            "peers": {
                "help": "PUT and GET 2.9 MB values: 10 satellites, without and with security, seals and parity; Redis; memcached.",
                "parameters": [
                    {"names": ["--constellation"], "help": "Constellation file. Default: constellation.toml of this folder if there is one, else the paper's constellation.", "path": "file"},
                    {"names": ["--rounds"], "help": "Measured rounds."},
                    {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
                ],
            },
            "pic": {
                "help": "Link segments that come over emulated links, beside full prefill, exact prefix, and loading before linking.",
                "parameters": [
                    {"names": ["--constellation"], "help": "Constellation file. Default: constellation.toml of this folder if there is one, else the paper's constellation.", "path": "file"},
                    {"names": ["--rate"], "help": "Rate of links in Mbit/s; may be given more than once. [default: 5 to 1000]", "many": True},
                    {"names": ["--round-trip"], "help": "Round trip in ms; may be given more than once. [default: 5, 30, 100]", "many": True},
                    {"names": ["--codec"], "help": "Codec; may be given more than once. All but the first are measured with the middle round trip only. [default: int8, raw, int4g32]", "many": True},
                    {"names": ["--rounds"], "help": "Measured runs of each way."},
                    {"names": ["-o", "--output"], "help": "Write the curves, .png, .svg or .pdf, or all times, .csv; may be given more than once.", "many": True, "path": "file"},
                    {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
                ],
            },
            "prefix": {
                "help": "Measure seconds to 30 tokens without and with the cache, for each codec: the paper's table 3.",
                "parameters": [
                    {"names": ["--constellation"], "help": "Constellation file. Default: constellation.toml of this folder if there is one, else the paper's constellation.", "path": "file"},
                    {"names": ["--rounds"], "help": "Generations of each kind."},
                    {"names": ["--codec"], "help": "Only this codec; may be given more than once.", "many": True},
                    {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
                ],
            },
            "spread": {
                "help": "Measure how evenly values and blocks lie on the servers.",
                "parameters": [
                    {"names": ["--constellation"], "help": "Constellation file. Default: constellation.toml of this folder if there is one, else the paper's constellation.", "path": "file"},
                    {"names": ["--values"], "help": "Values of 100 bytes."},
                    {"names": ["--blocks"], "help": "Blocks of 1 MB."},
                    {"names": ["--stored"], "help": "Values that are really stored."},
                    {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
                ],
            },
            "stragglers": {
                "help": "Get a block of 480 chunks in virtual time while some answers come late: without a code, hedged, and the first of all.",
                "parameters": [
                    {"names": ["--gets"], "help": "Gets of each kind."},
                    {"names": ["--share"], "help": "Share of the answers that come late."},
                    {"names": ["--delay-ms"], "help": "How much later."},
                    {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
                ],
            },
            "ttft": {
                "help": "Measure seconds to the first token of a server at URL (vLLM, skymem serve), without and with the prompt in the sky.",
                "parameters": [
                    {"names": ["url"]},
                    {"names": ["--rounds"], "help": "Measured prompts."},
                    {"names": ["--words"], "help": "Words of a prompt."},
                    {"names": ["--api-key"], "help": "The server's key, if any. [env var: OPENAI_API_KEY]"},
                    {"names": ["--json"], "help": "Print one JSON object instead of tables.", "flag": True},
                ],
            },
        },
    },
}
