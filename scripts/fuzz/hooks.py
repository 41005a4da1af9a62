"""What schemathesis is taught about Quorate; loaded by scripts/fuzz-api.

All it adds follows from the OpenAPI document and from the answers, so that a new operation needs nothing here: what a
healthy cluster may answer with 5xx, that answers have no field which is not documented, how to speak in lines, and how to
get further than random requests do. Those are mostly refused for one of many fields; but the refusal points at each fault,
and answers are full of keys and tokens that exist. So each request is sent again with such values and with its faults
repaired, until it is taken; and each request with a JSON object is followed by others made from the schema of that object.
"""

import atexit
import collections
import copy
import json
import os
import random
import re
import time

import schemathesis
from schemathesis.specs.openapi import checks as standard

RANDOM = random.Random(int(os.environ.get("QUORATE_FUZZ_SEED", "0")))
# How often a request that was answered well is sent once more with values that exist.
FOLLOW_UP_SHARE = 0.25
REPAIRS_MAX = 8
# Requests made from the schema of a body for each one that schemathesis makes.
BODIES = 8
# A deadline shorter than this may pass in a healthy cluster on a busy machine.
PATIENCE_MS = 20_000
# An election takes less than a second; on a busy machine some.
ELECTION_SECONDS = 15
LINES = "application/x-ndjson"
KNOWN_MAX = 50
# Few, so that operations meet each other.
HOT_KEYS = ["hot/1", "hot/2", "hot/3", "hot/ä b", "hot/%2F?#"]

# How often each operation was answered with each status, to see how far a run got.
reached = collections.Counter()
# Values seen in answers, by the name of their field.
known = {"key": HOT_KEYS[:]}
DOCUMENTS = [{"n": 1}, {"n": 2, "a": {"b": [1, "x"]}, "status": "new"}, {"status": "paid"}, {}, {"a": {"b": 7}}]
VALUES = [*DOCUMENTS, None, True, 0, -1, 1.5, 18_446_744_073_709_551_615, "new", "", [1, "x"], []]
NUMBERS = [0, 1, 2, 1_000, 60_000, 9_007_199_254_740_993]
TEXTS = ["n", "a.b", "/a/b/0", "status", "a", "x", "", "ä", "1"]
# The document, as the node gave it.
document = {}
# Parameters that take what a field of another name shows.
SAME = {
    "If-Match": ("cas", '"{}"'),
    "If-None-Match": ("cas", '"{}"'),
    "if_none_match": ("cas", "{}"),
    "id": ("request_id", "{}"),
    "Idempotency-Key": ("request_id", "{}"),
    "min_revision": ("revision", "{}"),
    "prefix": ("key", "{}"),
    "start": ("key", "{}"),
    "end": ("key", "{}"),
}


# --- the document -----------------------------------------------------------------------------------------------------


def is_endless(operation):
    return any("text/event-stream" in answer.get("content", {}) for answer in operation.get("responses", {}).values())


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Keeps the document, and forbids fields that are not in it. Clients must not: any version may bring new ones."""
    # A stream of events goes on until its reader has enough, so its operations are left to tests that read like that.
    for path, item in list(raw_schema["paths"].items()):
        if any(is_endless(operation) for operation in item.values() if isinstance(operation, dict)):
            del raw_schema["paths"][path]
    document.update(json.loads(json.dumps(raw_schema)))
    for schema in raw_schema["components"]["schemas"].values():
        if schema.get("type") == "object" and "properties" in schema:
            schema.setdefault("additionalProperties", False)


@schemathesis.hook
def before_call(context, case, kwargs):
    """Waiting takes the time of the run: a long poll gets a moment instead of a minute, so does a revision to come."""
    query = case.query or {}
    if "/cluster/members" in case.path and case.method.upper() != "GET":
        # The members are needed: changes are judged and not made. A switch that is no switch is refused anyway.
        given = query.get("dry_run", "false")
        if all(str(one).lower() == "false" for one in (given if isinstance(given, list) else [given])):
            query["dry_run"] = "true"
            case.query = query
    wait = query.get("wait_ms")
    if str(wait).isdigit() and 20 < int(wait) <= 60_000:
        query["wait_ms"] = 20
    timeout = str(case.headers.get("Request-Timeout", "10000"))
    body = case.body if isinstance(case.body, dict) else {}
    wait = body.get("wait_ms")
    if isinstance(wait, int) and 20 < wait <= 86_400_000:
        body["wait_ms"] = 20
    if ("min_revision" in query or "min_revision" in body) and timeout.isdigit() and int(timeout) > 100:
        case.headers["Request-Timeout"] = "100"


# --- lines ------------------------------------------------------------------------------------------------------------


@schemathesis.serializer(LINES)
def one_line(ctx, value):
    return value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n"


@schemathesis.deserializer(LINES)
def first_line(ctx, response):
    """The document describes one line. All lines of an answer look alike, and a generated request has one."""
    return json.loads(response.content.splitlines()[0])


# --- judging ----------------------------------------------------------------------------------------------------------


@schemathesis.check
def only_sane_server_errors(ctx, response, case):
    answers = [(line["status"], line["answer"]) for line in lines_of(response)]
    for status, problem in answers or [(response.status_code, body_of(response))]:
        reached[(name_of(case), status)] += 1
        judge(status, problem, case)


def name_of(case):
    """The operation; where one route takes several, the kind that the body names."""
    body = case.body if isinstance(case.body, dict) else {}
    body = body.get("op") if isinstance(body.get("op"), dict) else body
    kind = body.get("op")
    return f"{case.operation.label} {kind}" if isinstance(kind, str) and kind.isalpha() else case.operation.label


@atexit.register
def show_reached():
    print("\nAnswers by operation:")
    for name in sorted({name for name, _ in reached}):
        counts = sorted((status, count) for (other, status), count in reached.items() if other == name)
        if len(name) < 60:
            print(f"  {name:40} {'  '.join(f'{status}: {count}' for status, count in counts)}")


def judge(status, problem, case):
    """A healthy cluster answers 503 only while it elects a leader, and 504 only to those who asked for haste."""
    if status < 500:
        return
    code = problem.get("code") if isinstance(problem, dict) else None
    if status == 503 and code in ("no_leader", "not_ready"):
        # Leadership goes only to a voter that is up to date.
        assert case.path.endswith("/cluster/leader") or soon_better(case), f"503 `{code}` for {ELECTION_SECONDS} s"
    elif status == 504 and code == "timeout":
        assert in_haste(case), "504, and the request had neither a short deadline nor a revision to wait for"
    else:
        raise AssertionError(f"{status} `{code}` from a healthy cluster: {json.dumps(problem)[:400]}")


def soon_better(case):
    deadline = time.monotonic() + ELECTION_SECONDS
    while time.monotonic() < deadline:
        response = case.call()
        answers = [response.status_code, *(line["status"] for line in lines_of(response))]
        if 503 not in answers:
            return True
        time.sleep(0.2)
    return False


def in_haste(case):
    asked = [case.headers.get("Request-Timeout")] if case.headers else []
    asked += re.findall(r'"timeout_ms": (\d+)', json.dumps(case.body, default=str))
    short = any(str(text).isdigit() and int(text) < PATIENCE_MS for text in asked if text is not None)
    body = case.body if isinstance(case.body, dict) else {}
    return short or "min_revision" in (case.query or {}) or "min_revision" in body


@schemathesis.check
def problems_are_consistent(ctx, response, case):
    """What the schema cannot say of an error: that body, status and headers tell the same."""
    problem = body_of(response)
    if response.status_code == 431:
        return  # Refused before there is a request.
    if response.status_code < 400 or not isinstance(problem, dict):
        assert response.status_code < 400, "an error without a problem document"
        return
    assert problem["status"] == response.status_code, f"the document says {problem['status']}"
    assert problem["type"] == f"/errors/{problem['code']}", problem["type"]
    if response.status_code in (429, 503):
        assert "retry-after" in response.headers, "no Retry-After"
    if problem["code"] in ("invalid_argument", "unknown_field"):
        assert problem.get("errors"), "no `errors` point at the fault"


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Takes back what schemathesis calls accepted and is not, or is documented otherwise than by a schema."""
    if type(failure).__name__ != "AcceptedNegativeData":
        return True
    # A stream is always 200: each line of it has its own status.
    of_stream = case.media_type == LINES
    # HTTP wants unknown headers to be passed over.
    of_header = "in header - object with unexpected properties" in failure.message
    # `?dry_run` is `?dry_run=true`.
    documented = case.operation.query
    empty = [name for name, value in (case.query or {}).items() if value == "" and name in documented]
    of_switch = any(documented[name].definition.get("allowEmptyValue") for name in empty)
    return not (of_stream or of_header or of_switch)


# --- getting further --------------------------------------------------------------------------------------------------


@schemathesis.check
def follow_up(ctx, response, case):
    """Sends the request again with values that exist and without its faults; what is answered must conform as well."""
    learn(body_of(response))
    faults = faults_of(response)
    if not faults and RANDOM.random() > FOLLOW_UP_SHARE:
        return
    request = copy_of(case)
    put_known_values(request)
    send(request, faults)
    schema = body_schema(case)
    for _ in range(BODIES if schema else 0):
        request = copy_of(case)
        put_known_values(request)
        request.body = sample(schema)
        send(request, [])


def send(request, faults):
    """Sends a request, and again without what is wrong with it, until it is taken or nothing is left to try."""
    for _ in range(REPAIRS_MAX):
        if not repair(request, faults):
            return
        answer = request.call()
        request.validate_response(answer, checks=CONFORMANCE)
        learn(body_of(answer))
        faults = faults_of(answer)
        if not faults:
            return


def body_of(response):
    try:
        return json.loads(response.content)
    except ValueError:
        return None


def lines_of(response):
    if not response.headers.get("content-type", [""])[0].startswith(LINES):
        return []
    return [json.loads(line) for line in response.content.splitlines()]


def learn(value):
    if isinstance(value, list):
        for item in value:
            learn(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name in ("value", "errors"):
                continue
            learn(item)
            if isinstance(item, (str, int)) and not isinstance(item, bool) and name != "key":
                seen = known.setdefault(name, [])
                seen.append(item)
                del seen[:-KNOWN_MAX]


def faults_of(response):
    bodies = [body_of(response)] if response.status_code == 400 else []
    bodies += [line["answer"] for line in lines_of(response) if line["status"] == 400]
    return [fault for body in bodies if isinstance(body, dict) for fault in body.get("errors", [])]


def copy_of(case):
    return case.operation.Case(
        method=case.method,
        path_parameters=dict(case.path_parameters or {}),
        headers=dict(case.headers or {}),
        query=dict(case.query or {}),
        body=json.loads(json.dumps(case.body)) if isinstance(case.body, (dict, list)) else case.body,
        media_type=case.media_type,
    )


def some_known(name):
    source, shape = SAME.get(name, (name, None))
    values = known.get(source)
    if not values:
        return None
    # The newest tokens are the ones that may still hold.
    value = RANDOM.choice(values if source == "key" else values[-5:])
    return shape.format(value) if shape else value


def put_known_values(case):
    for part in (case.path_parameters, case.query, case.headers, case.body):
        put_into(part, as_text=part is case.path_parameters or part is case.headers)
    # A header is a condition more often than not refused; half of the requests go without.
    for name in ("If-Match", "If-None-Match", "Request-Timeout", "Idempotency-Key"):
        if name in case.headers and RANDOM.random() < 0.5:
            del case.headers[name]


def put_into(part, as_text=False):
    if not hasattr(part, "items"):
        return
    for name, value in list(part.items()):
        if isinstance(value, dict) and name not in ("value", "patch"):
            put_into(value)
        elif (found := some_known(name)) is not None and RANDOM.random() < 0.7:
            part[name] = str(found) if as_text else found


def repair(case, faults):
    """Takes out what the answer points at; puts in what it misses. Whether there is anything left to try."""
    changed = not faults
    for fault in faults:
        place, _, name = fault["pointer"].partition(":")
        if place == "query":
            changed |= take(case.query, name)
        elif place == "header":
            changed |= take(case.headers, name)
        elif isinstance(case.body, dict):
            changed |= repair_body(case, [unescape(step) for step in fault["pointer"].split("/")[1:]])
    return changed


def repair_body(case, steps):
    target, schema = case.body, body_schema(case) or {}
    for step in steps[:-1]:
        target, schema = child(target, step), property_of(schema, step)
    if not steps or child(target, steps[-1]) is None and not isinstance(target, dict):
        return False
    name = steps[-1]
    if isinstance(target, list):
        del target[int(name)]
    elif name not in target or name in resolved(schema).get("required", []):
        target[name] = sample(property_of(schema, name), name)
    else:
        del target[name]
    return True


def child(target, step):
    if isinstance(target, dict):
        return target.get(step)
    if isinstance(target, list) and step.isdigit() and int(step) < len(target):
        return target[int(step)]
    return None


# --- making values from their schema ----------------------------------------------------------------------------------


def resolved(schema):
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


def property_of(schema, name):
    schema = resolved(schema)
    return schema.get("properties", {}).get(name) or schema.get("items") or {}


def body_schema(case):
    """The schema of a body that is an object with known fields."""
    operation = document["paths"].get(case.path, {}).get(case.method.lower(), {})
    content = operation.get("requestBody", {}).get("content", {}).get(case.media_type, {})
    schema = resolved(content.get("schema", {}))
    return schema if "properties" in schema else None


def sample(schema, name="", depth=0):
    """A value that mostly fits the schema, one of few, so that requests meet the same entries and fields."""
    schema = resolved(schema)
    for options in (schema.get("enum"), [schema["const"]] if "const" in schema else None):
        if options:
            return RANDOM.choice(options)
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return sample(RANDOM.choice(schema[word]), name, depth)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = RANDOM.choice(kind)
    if kind == "object" and "properties" in schema:
        return sample_object(schema, depth)
    if kind == "object":
        # A copy: repairs change requests in place, and would make one contain itself.
        return copy.deepcopy(RANDOM.choice(DOCUMENTS))
    if kind == "array":
        return [sample(schema.get("items", {}), name, depth + 1) for _ in range(RANDOM.choice([0, 1, 1, 2]))]
    found = some_known(name)
    if found is not None and RANDOM.random() < 0.8:
        return found
    simple = {"boolean": [True, False], "integer": NUMBERS, "number": NUMBERS, "string": TEXTS, "null": [None]}
    return copy.deepcopy(RANDOM.choice(simple.get(kind, VALUES)))


def sample_object(schema, depth):
    required = schema.get("required", [])
    taken = [name for name in schema["properties"] if name in required or RANDOM.random() < 0.4 / (depth + 1)]
    return {name: sample(schema["properties"][name], name, depth + 1) for name in taken}


def unescape(step):
    return step.replace("~1", "/").replace("~0", "~")


def take(part, name):
    if part and name in part:
        del part[name]
        return True
    return False


CONFORMANCE = [
    standard.status_code_conformance,
    standard.content_type_conformance,
    standard.response_headers_conformance,
    standard.response_schema_conformance,
    only_sane_server_errors,
    problems_are_consistent,
]
