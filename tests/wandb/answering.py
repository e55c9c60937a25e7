"""A stand-in that also answers W&B's public API: about the runs it was sent, and about reports: `answering.py PORT`.

$STANDIN_BEHIND is the script of the stand-in that does the rest. Reports lie among the sweeps of what was received.
"""

import json
import os
from pathlib import Path

script = os.environ["STANDIN_BEHIND"]
before, main = Path(script).read_text(encoding="utf-8").split('if __name__ == "__main__":')
exec(compile(before, script, "exec"))
_of_runs = answer  # noqa: F821
LAST_PAGE = {"__typename": "PageInfo", "endCursor": None, "hasNextPage": False}


def node(number, name, known):  # type: ignore[no-untyped-def]
    said = {key: value for upsert in known["upserts"] for key, value in upsert.items()}
    return {
        "id": f"id-{name}",
        "projectId": "1",
        "name": name,
        "displayName": said["displayName"],
        "state": {None: "running", 0: "finished"}.get(known["exitcode"], "failed"),
        "config": said["config"],
        "group": said["groupName"],
        "jobType": said["jobType"],
        "createdAt": f"2026-01-02T03:04:{number:02}Z",
        "summaryMetrics": json.dumps(known["summary"]),
        "systemMetrics": "{}",
        "tags": said.get("tags", []),
        "user": {"name": "me", "username": "me"},
    }


def asked(one, group, tags):  # type: ignore[no-untyped-def]
    return one["group"] == group or bool({*one["tags"]} & {*tags})


def answer(name, query, v):  # type: ignore[no-untyped-def]
    if name == "GetDefaultEntity":
        return {"viewer": {"id": "U", "entity": "me"}}
    if name == "GetProjects":
        return {"models": {"pageInfo": LAST_PAGE, "edges": []}}
    if name == "CreateProject":
        return {"upsertModel": {"project": {}, "inserted": True}}
    if name == "Runs" and v["project"] == "nowhere":
        return {"project": None}
    if name == "Runs":
        in_group, tagged = json.loads(v["filters"])["$or"]
        nodes = [node(number, *known) for number, known in enumerate(RUNS.items())]  # noqa: F821
        edges = [
            {"node": one, "cursor": one["id"]} for one in nodes if asked(one, in_group["group"], tagged["tags"]["$in"])
        ]
        runs = {"edges": edges, "pageInfo": LAST_PAGE}
        return {"project": {"internalId": "1", "runCount": len(edges), "readOnly": False, "runs": runs}}
    if name == "upsertView":
        key = v["id"] or f"report{len(SWEEPS)}"  # noqa: F821
        SWEEPS[key] = v  # noqa: F821
        project = {"id": "1", "name": v["projectName"], "entityName": v["entityName"]}
        shown = {"id": key, "displayName": v["displayName"], "description": v["description"], "spec": v["spec"]}
        return {"upsertView": {"view": {**shown, "type": v["type"], "name": v["name"], "project": project}}}
    return _of_runs(name, query, v)


exec(compile('if __name__ == "__main__":' + main, script, "exec"))
