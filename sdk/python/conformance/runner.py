"""Performs the files of the common suite, step by step.

Owns the language of the files: variables, expectations, faults, background calls. What a call does is in `calls`.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, cast

import yaml
from calls import Calls, Missing, SuiteError, error_form, wire_form

from quorate import AsyncClient, Client, QuorateError

SUITE = Path(__file__).resolve().parents[2] / "conformance"
WITHIN_MS = 15_000
FILE_KEYS = {"name", "quick", "needs", "endpoints", "steps"}
VERBS = ("call", "start", "next", "stop", "fault", "cancel", "join")
# A thread cannot be broken off; an event loop cannot be used in a forked child.
CAPABILITIES = {"suspend", "foreign", "stderr", "clock"}
ONLY_SYNC = {"fork"}
ONLY_ASYNC = {"cancel", "cancel_release"}
STEP_KEYS = {*VERBS, "with", "as", "of", "expect", "greater", "error", "save", "background", "repeat", "eventually", "within_ms"}
VARIABLE = re.compile(r"\{([a-z_]\w*)\}")
# A byte of a name that is no text.
BYTE = re.compile(r"\\x([0-9a-f]{2})")

Step = dict[str, Any]


class StepError(Exception):
    """A step did not come out as the file says."""


class Cluster:
    """The cluster that can be hurt."""

    def __init__(self) -> None:
        command = [sys.executable, str(SUITE / "cluster.py")]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SuiteError("the cluster did not start")
        described = json.loads(line)
        self.endpoints: list[str] = described["endpoints"]
        self._control: str = described["control"]

    def post(self, fault: str, body: dict[str, Any]) -> dict[str, Any]:
        """Does one thing to it."""
        data = json.dumps(body).encode()
        request = urllib.request.Request(f"{self._control}/{fault}", data=data, method="POST")
        with urllib.request.urlopen(request, timeout=150) as answer:
            return json.loads(answer.read())

    def stop(self) -> None:
        """Ends it."""
        self._process.communicate()


class Run:
    """One run of one file."""

    def __init__(self, cluster: Cluster, client: Any, is_sync: bool) -> None:
        self._cluster = cluster
        self._calls = Calls(client, is_sync)
        self._variables: dict[str, Any] = {"p": f"c{secrets.token_hex(5)}"}
        self._things: dict[str, Any] = {}
        self._background: dict[str, asyncio.Task[tuple[Any, Any]]] = {}

    async def steps(self, steps: list[Step]) -> None:
        """All of them."""
        try:
            for n, step in enumerate(steps, 1):
                try:
                    await asyncio.wait_for(self._step(step), step.get("within_ms", WITHIN_MS) / 1000)
                except asyncio.TimeoutError as error:
                    raise StepError(f"step {n}: not done in time") from error
                except (StepError, SuiteError, QuorateError, Missing, OSError, KeyError) as error:
                    raise StepError(f"step {n}: {type(error).__name__}: {error}") from error
        finally:
            await self._clean()

    async def _clean(self) -> None:
        for task in self._background.values():
            task.cancel()
        self._calls.end()
        for thing in self._things.values():
            close = getattr(thing, "close", None)
            if callable(close):
                close()

    async def _step(self, step: Step) -> None:
        unknown = set(step) - STEP_KEYS
        if unknown or sum(verb in step for verb in VERBS) != 1:
            raise SuiteError(f"a step does not have {sorted(unknown) or 'exactly one verb'}")
        if step.get("background"):
            self._background[step["as"]] = asyncio.ensure_future(self._repeat(step))
            # So that it is under way when the next step begins.
            await asyncio.sleep(0)
            return
        if "join" in step:
            answer, error = await self._background.pop(step["join"])
            self._judge(step, answer, error)
            return
        if step.get("eventually"):
            await self._eventually(step)
            return
        if "repeat" not in step:
            self._judge(step, *await self._outcome(step))
            return
        for i in range(1, step["repeat"] + 1):
            self._variables["i"] = i
            self._judge(step, *await self._outcome(step))

    async def _repeat(self, step: Step) -> tuple[Any, Any]:
        """A call in the background; its last outcome, or the first error."""
        outcome: tuple[Any, Any] = (None, None)
        for _ in range(step.get("repeat", 1)):
            outcome = await self._outcome(step)
            if outcome[1] is not None:
                break
        return outcome

    async def _eventually(self, step: Step) -> None:
        while True:
            try:
                self._judge(step, *await self._outcome(step))
                return
            except StepError as error:
                wrong = error
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                print(f"  the last look: {wrong}", file=sys.stderr)
                raise

    async def _outcome(self, step: Step) -> tuple[Any, Any]:
        """The answer, or the error."""
        try:
            answer = await self._perform(step)
        except (QuorateError, Missing) as error:
            return None, error
        return wire_form(answer), None

    async def _perform(self, step: Step) -> Any:
        arguments = self._filled(step.get("with", {}))
        if "fault" in step:
            return await asyncio.to_thread(self._cluster.post, step["fault"], arguments)
        if "start" in step:
            self._things[step["as"]] = await getattr(self._calls, f"start_{step['start']}")(arguments)
            return {}
        if "next" in step:
            watch = self._things[step["next"]]
            return await self._calls.do(watch.next)
        if "stop" in step:
            self._things.pop(step["stop"]).close()
            return {}
        if "cancel" in step:
            await self._cancel(step["cancel"])
            return {}
        of = self._things[step["of"]] if "of" in step else None
        answer = await self._calls.named(step["call"])(arguments, of)
        if isinstance(answer, tuple):
            answer, thing = cast("tuple[Any, Any]", answer)
            if "as" in step:
                self._things[step["as"]] = thing
        return answer

    async def _cancel(self, name: str) -> None:
        """Breaks a call in the background off."""
        task = self._background.pop(name)
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            # Of an error of the client it is the outcome.
            task.result()

    def _judge(self, step: Step, answer: Any, error: Exception | None) -> None:
        if "error" in step:
            if error is None:
                raise StepError(f"it worked, and should have failed: {answer}")
            compare(self._filled(step["error"]), error_form(error), "error")
            return
        if error is not None:
            raise StepError(f"{type(error).__name__}: {error}")
        compare(self._filled(step.get("expect", {})), answer, "answer")
        for name, least in step.get("greater", {}).items():
            if not int(at(answer, name)) > int(self._filled(least)):
                raise StepError(f"`{name}` is {at(answer, name)}, not greater than {self._filled(least)}")
        for name, variable in step.get("save", {}).items():
            self._variables[variable] = at(answer, name)

    def _filled(self, part: Any) -> Any:
        """With variables in their places."""
        if isinstance(part, dict):
            return {self._filled(key): self._filled(value) for key, value in cast("dict[str, Any]", part).items()}
        if isinstance(part, list):
            return [self._filled(one) for one in cast("list[Any]", part)]
        if not isinstance(part, str):
            return part
        part = BYTE.sub(lambda found: bytes([int(found.group(1), 16)]).decode("utf-8", "surrogateescape"), part)
        whole = VARIABLE.fullmatch(part)
        if whole:
            return self._value(whole)
        return VARIABLE.sub(lambda found: str(self._value(found)), part)

    def _value(self, found: re.Match[str]) -> Any:
        if found.group(1) not in self._variables:
            raise SuiteError(f"there is no variable `{found.group(1)}`")
        return self._variables[found.group(1)]


def at(answer: Any, path: str) -> Any:
    """The field of an answer at a dotted path."""
    for name in path.split("."):
        try:
            part: Any = int(name) if isinstance(answer, list) else name
            answer = cast("Any", answer)[part]
        except (KeyError, IndexError, TypeError) as error:
            raise StepError(f"the answer has no `{path}`: {answer}") from error
    return answer


def compare(expected: Any, found: Any, where: str) -> None:
    """Objects are partial, lists are whole."""
    if isinstance(expected, dict):
        if not isinstance(found, dict):
            raise StepError(f"{where} is {found!r}, not an object")
        for name, value in cast("dict[str, Any]", expected).items():
            compare(value, cast("dict[str, Any]", found).get(name), f"{where}.{name}")
    elif isinstance(expected, list):
        wanted = cast("list[Any]", expected)
        if not isinstance(found, list) or len(cast("list[Any]", found)) != len(wanted):
            raise StepError(f"{where} is {found!r}, not {wanted!r}")
        for n, (one, other) in enumerate(zip(wanted, cast("list[Any]", found), strict=True)):
            compare(one, other, f"{where}.{n}")
    elif expected != found or isinstance(expected, bool) != isinstance(found, bool):
        raise StepError(f"{where} is {found!r}, not {expected!r}")


def load(path: Path) -> dict[str, Any]:
    """A file of the suite."""
    file = yaml.safe_load(path.read_text())
    unknown = set(file) - FILE_KEYS
    if unknown:
        raise SuiteError(f"{path}: unknown keys {sorted(unknown)}")
    return file


async def run_file(cluster: Cluster, file: dict[str, Any], is_sync: bool) -> str | None:
    """Why a file failed; `None` if it did not."""
    client: Any = (Client if is_sync else AsyncClient)(cluster.endpoints[: file.get("endpoints")])
    try:
        await Run(cluster, client, is_sync).steps(file["steps"])
    except StepError as error:
        return str(error)
    finally:
        client.close()
        await asyncio.to_thread(cluster.post, "reset", {})
    return None


async def run_all(paths: list[Path], is_sync: bool) -> bool:
    """Whether all went well."""
    cluster = await asyncio.to_thread(Cluster)
    went_well = True
    try:
        for path in paths:
            file = load(path)
            missing = sorted(set(file.get("needs", [])) - CAPABILITIES - (ONLY_SYNC if is_sync else ONLY_ASYNC))
            if missing:
                print(f"not tried {path.stem}: {', '.join(missing)}", flush=True)
                continue
            started = time.monotonic()
            why = await run_file(cluster, file, is_sync)
            took = round((time.monotonic() - started) * 1000)
            print(f"ok {path.stem} {took}" if why is None else f"FAILED {path.stem}: {why}", flush=True)
            went_well = went_well and why is None
    finally:
        await asyncio.to_thread(cluster.stop)
    return went_well
