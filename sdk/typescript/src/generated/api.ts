// The types of the wire. Written by `npm run generate` from docs/openapi.json; not to be changed by hand.

export interface paths {
    "/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["root"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/console": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["console_entry"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/console/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["console"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/errors/{code}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["error"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/livez": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["livez"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["openapi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["readyz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/access/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["may"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/access/roles": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["roles"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/access/roles/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["role"];
        put: operations["put_role"];
        post?: never;
        delete: operations["delete_role"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/access/self": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["who_am_i"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/access/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["tokens"];
        put?: never;
        post: operations["create_token"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/access/tokens/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete: operations["delete_token"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/access/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["users"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/access/users/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["user"];
        put: operations["put_user"];
        post?: never;
        delete: operations["delete_user"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["audit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/barriers/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["barrier"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/barriers/{name}/enter": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["enter_barrier"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/barriers/{name}/leave": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["leave_barrier"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/bulk": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["bulk"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/claim": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["claim"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/cluster/backup": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["backup"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/cluster/digest": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["digest"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/cluster/faults": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["faults"];
        put?: never;
        post: operations["handle_faults"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/cluster/invitations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["invitations"];
        put?: never;
        post: operations["invite_member"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/cluster/invitations/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete: operations["revoke_invitation"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/cluster/leader": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["lead"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/cluster/members": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["members"];
        put?: never;
        post: operations["add_member"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/cluster/members/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete: operations["remove_member"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/cluster/members/{id}/demote": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["demote_member"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/cluster/members/{id}/promote": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["promote_member"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/cluster/members/{id}/repair": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["repair_member"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/cluster/members/{id}/replace": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["replace_member"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/cluster/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["status"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/collections": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["collections"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/collections/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["collection"];
        put: operations["put_collection"];
        post?: never;
        delete: operations["delete_collection"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/count": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["count"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/delete_where": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["delete_where"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/elections": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["elections"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/elections/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["election"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/elections/{name}/campaign": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["campaign"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/elections/{name}/observe": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["observe_election"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/elections/{name}/proclaim": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["proclaim"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/elections/{name}/resign": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["resign"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/find": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["find"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/kv": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/kv/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["get"];
        put: operations["put"];
        post?: never;
        delete: operations["delete"];
        options?: never;
        head?: never;
        patch: operations["patch"];
        trace?: never;
    };
    "/v1/latches/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["latch"];
        put: operations["put_latch"];
        post?: never;
        delete: operations["delete_latch"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/latches/{name}/count_down": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["count_down"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/limits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["limits"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/locks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["locks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/locks/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["lock"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/locks/{name}/acquire": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["acquire"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/locks/{name}/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["check_lock"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/locks/{name}/release": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["release"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/node/callers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["node_callers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/node/config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["node_config"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/node/log": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["node_log"];
        put: operations["set_node_log"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/node/log/lines": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["node_log_lines"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/ops": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["op"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/quotas/default": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["default_quota"];
        put: operations["put_default_quota"];
        post?: never;
        delete: operations["delete_default_quota"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/quotas/prefixes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["prefix_quotas"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/quotas/prefixes/{prefix}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["prefix_quota"];
        put: operations["put_prefix_quota"];
        post?: never;
        delete: operations["delete_prefix_quota"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/quotas/principals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["principal_quotas"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/quotas/principals/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["principal_quota"];
        put: operations["put_principal_quota"];
        post?: never;
        delete: operations["delete_principal_quota"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/requests/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["request"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sequences/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["sequence"];
        put?: never;
        post: operations["next_numbers"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["sessions"];
        put?: never;
        post: operations["create_session"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/renew": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["renew_sessions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{session}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["session"];
        put?: never;
        post?: never;
        delete: operations["end_session"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{session}/renew": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["renew_session"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tasks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["queues"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tasks/{queue}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["tasks"];
        put?: never;
        post: operations["schedule_tasks"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tasks/{queue}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["cancel_task"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tasks/{queue}/claim": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["claim_tasks"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tasks/{queue}/complete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["complete_task"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tasks/{queue}/extend": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["extend_task"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tasks/{queue}/fail": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["fail_task"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tasks/{queue}/requeue": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["requeue_tasks"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tasks/{queue}/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["queue_stats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tasks/{queue}/task/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["task"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/txn": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["txn"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/update_where": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["update_where"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/watch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["watch"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/version": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["version"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        AccessCheckAnswer: {
            access_revision: string;
            allowed: boolean;
            name?: string;
            permission: components["schemas"]["Permission"];
            prefix?: string;
            user?: string;
        };
        AcquireAnswer: {
            /** Format: uint64 */
            ahead?: number;
            holders?: components["schemas"]["LockHolder"][];
            /** Format: uint64 */
            index: number;
            lock: string;
            mode: components["schemas"]["LockMode"];
            place?: string;
            replayed?: boolean;
            revision: string;
            session: string;
            state: components["schemas"]["LockState"];
            token?: string;
        };
        AcquireRequest: {
            /** Format: uint64 */
            delay_ms?: number;
            /** Format: int32 */
            max_waiters?: number;
            mode?: components["schemas"]["LockMode"];
            /** Format: uint64 */
            poll_ms?: number;
            request_id?: string;
            session: string;
            /** Format: int32 */
            slots?: number;
            /** Format: uint64 */
            wait_ms?: number;
            with_holders?: boolean;
        };
        AddMemberRequest: {
            /** Format: uint64 */
            id: number;
            peer_addr: string;
            promote?: boolean;
        };
        AnswerLine: {
            answer: Record<string, never>;
            /** Format: uint64 */
            leader: number | null;
            /** Format: uint64 */
            n: number | null;
            /** Format: int32 */
            status: number;
            term: string;
        };
        /** @enum {string} */
        Applied: "no" | "yes" | "unknown";
        AuditAnswer: {
            cursor?: string;
            /** Format: uint64 */
            index: number;
            key: string;
            lines: components["schemas"]["AuditView"][];
            oldest_revision: string;
            revision: string;
        };
        AuditView: {
            effect: string;
            /** Format: uint64 */
            index: number;
            op: string;
            principal?: string;
            refusal?: components["schemas"]["ErrorCode"];
            request_id?: string;
            revision: string;
            /** Format: date-time */
            time: string;
        };
        BarrierAnswer: {
            barrier: string;
            /** Format: int32 */
            entered: number;
            /** Format: uint64 */
            index: number;
            opened_revision?: string;
            /** Format: int32 */
            parties?: number;
            replayed?: boolean;
            revision: string;
            state: components["schemas"]["BarrierState"];
        };
        /** @enum {string} */
        BarrierState: "waiting" | "open" | "empty";
        BulkAnswer: {
            /** Format: uint64 */
            applied: number;
            dry_run?: boolean;
            /** Format: uint64 */
            failed: number;
            /** Format: uint64 */
            index: number;
            replayed?: boolean;
            results: components["schemas"]["BulkResult"][];
            revision: string;
            /** Format: uint64 */
            skipped: number;
        };
        /** @enum {string} */
        BulkOutcome: "applied" | "skipped" | "failed";
        BulkRequest: {
            dry_run?: boolean;
            ops: components["schemas"]["Op"][];
            request_id?: string;
        };
        BulkResult: {
            cas?: string;
            code?: components["schemas"]["ErrorCode"];
            create_revision?: string;
            current?: components["schemas"]["EntryView"];
            detail?: string;
            errors?: components["schemas"]["InputFault"][];
            failed?: components["schemas"]["Failed"][];
            key: string;
            /** Format: uint64 */
            lock_ms?: number;
            /** Format: uint64 */
            n: number;
            outcome: components["schemas"]["BulkOutcome"];
            prev?: components["schemas"]["EntryView"];
            revision: string;
            /** Format: int32 */
            status?: number;
            /** Format: uint64 */
            ttl_ms?: number;
            /** Format: uint64 */
            version?: number;
        };
        CampaignAnswer: {
            /** Format: uint64 */
            ahead?: number;
            election: string;
            /** Format: uint64 */
            index: number;
            place?: string;
            replayed?: boolean;
            revision: string;
            session: string;
            state: components["schemas"]["CampaignState"];
            term?: string;
        };
        CampaignRequest: {
            /** Format: uint64 */
            delay_ms?: number;
            /** Format: uint64 */
            poll_ms?: number;
            request_id?: string;
            session: string;
            value?: unknown;
            /** Format: uint64 */
            wait_ms?: number;
        };
        /** @enum {string} */
        CampaignState: "leader" | "candidate";
        CheckAnswer: {
            held: boolean;
            /** Format: uint64 */
            index: number;
            lock: string;
            mode: components["schemas"]["LockMode"];
            revision: string;
            session: string;
            token: string;
        };
        ClaimAnswer: {
            /** Format: uint64 */
            count: number;
            dry_run?: boolean;
            entries: components["schemas"]["EntryView"][];
            /** Format: uint64 */
            examined: number;
            failed?: components["schemas"]["BulkResult"][];
            /** Format: uint64 */
            index: number;
            index_used?: string[];
            left_out?: boolean;
            more: boolean;
            replayed?: boolean;
            revision: string;
        };
        ClaimRequest: {
            dry_run?: boolean;
            guard?: components["schemas"]["Guard"];
            /** Format: int32 */
            limit?: number;
            /** Format: uint64 */
            lock_ms?: number;
            order_by?: string[];
            patch?: unknown;
            prefix: string;
            request_id?: string;
            where?: components["schemas"]["Criterion"][];
        };
        CollectionAnswer: {
            cas: string;
            create_revision: string;
            /** Format: uint64 */
            index?: number;
            indexes: components["schemas"]["IndexView"][];
            mod_revision: string;
            name: string;
            replayed?: boolean;
            revision?: string;
            rules: components["schemas"]["CollectionRules"];
            /** Format: uint64 */
            version: number;
        };
        CollectionList: {
            collections: components["schemas"]["CollectionAnswer"][];
            cursor?: string;
            /** Format: uint64 */
            index: number;
            revision: string;
        };
        CollectionRemoved: {
            /** Format: uint64 */
            index: number;
            name: string;
            replayed?: boolean;
            revision: string;
        };
        CollectionRules: {
            fields?: {
                [key: string]: components["schemas"]["FieldRule"];
            };
            indexes?: components["schemas"]["IndexRule"][];
            precondition_required?: boolean;
            required?: string[];
            /** Format: uint64 */
            ttl_ms?: number;
        };
        /** @enum {string} */
        ContentType: "json" | "bytes";
        CountAnswer: {
            /** Format: uint64 */
            count: number;
            cursor?: string;
            /** Format: uint64 */
            examined: number;
            /** Format: uint64 */
            index: number;
            index_used?: string[];
            revision: string;
        };
        CountDownRequest: {
            /** Format: uint64 */
            by?: number;
            request_id?: string;
        };
        CountRequest: {
            consistency?: components["schemas"]["ReadConsistency"];
            cursor?: string;
            min_revision?: string | number;
            prefix?: string;
            revision?: string | number;
            where?: components["schemas"]["Criterion"][];
        };
        Criterion: components["schemas"]["Predicate"] | {
            any: components["schemas"]["Criterion"][];
        } | {
            all: components["schemas"]["Criterion"][];
        } | {
            not: components["schemas"]["Criterion"];
        };
        /** @enum {string} */
        DeleteCause: "removed" | "expired" | "session_ended";
        DigestAnswer: {
            digest: string;
            /** Format: uint64 */
            index: number;
            /** Format: uint64 */
            node_id: number;
            revision: string;
        };
        ElectionAnswer: {
            /** Format: uint64 */
            candidate_count: number;
            candidates: components["schemas"]["LockWaiter"][];
            /** Format: uint64 */
            delay_left_ms: number;
            election: string;
            /** Format: uint64 */
            index: number;
            leader: components["schemas"]["LeaderView"] | null;
            revision: string;
        };
        ElectionList: {
            cursor?: string;
            elections: components["schemas"]["ElectionSummary"][];
            /** Format: uint64 */
            index: number;
            revision: string;
        };
        ElectionSummary: {
            /** Format: uint64 */
            candidate_count: number;
            election: string;
            has_leader: boolean;
        };
        EnterRequest: {
            /** Format: int32 */
            parties: number;
            request_id?: string;
            session: string;
            /** Format: uint64 */
            wait_ms?: number;
        };
        EntryView: {
            cas: string | null;
            content_type: components["schemas"]["ContentType"];
            create_revision: string;
            dry_run?: boolean;
            /** Format: uint64 */
            index?: number;
            key: string;
            /** Format: uint64 */
            lock_ms?: number;
            locked?: boolean;
            mod_revision: string;
            replayed?: boolean;
            revision?: string;
            session?: string;
            /** Format: uint64 */
            ttl_ms?: number;
            value?: unknown;
            value_base64?: string;
            /** Format: uint64 */
            value_bytes?: number;
            /** Format: uint64 */
            version: number;
        };
        /** @enum {string} */
        ErrorCode: "already_exists" | "already_queued" | "cas_mismatch" | "change_refused" | "compacted" | "condition_not_met" | "different_settings" | "guard_failed" | "in_use" | "internal" | "invalid_argument" | "invalid_document" | "locked" | "method_not_allowed" | "no_leader" | "not_found" | "not_lock_holder" | "not_ready" | "permission_denied" | "precondition_required" | "quarantined" | "quota_exceeded" | "request_id_reused" | "session_expired" | "timeout" | "too_dear" | "too_large" | "too_many_requests" | "unauthenticated" | "unique_violation" | "unknown_field" | "unsupported_media_type";
        Failed: {
            actual?: unknown;
            actual_start?: string;
            detail: string;
            path?: string;
            pointer: string;
        };
        FaultedCommand: {
            at: string;
            /** Format: uint64 */
            cluster_clock_ms: number;
            command: string;
            /** Format: uint64 */
            index: number;
            /** Format: int32 */
            level: number;
            /** Format: int32 */
            number: number;
            revision: string;
        };
        FaultsAnswer: {
            /** Format: uint64 */
            commands: number;
            kept: components["schemas"]["FaultedCommand"][];
            /** Format: uint64 */
            parked: number;
            work: components["schemas"]["ParkedWork"][];
        };
        FaultsReply: {
            /** Format: int32 */
            count: number;
            /** Format: uint64 */
            index: number;
            replayed?: boolean;
            revision: string;
        };
        FaultsRequest: {
            request_id?: string;
            verb: components["schemas"]["FaultsVerb"];
            work?: string;
        };
        /** @enum {string} */
        FaultsVerb: "retry" | "drop" | "forget";
        FieldRule: {
            auto_update?: boolean;
            default?: unknown;
            /** Format: uint64 */
            max?: number;
            sequence?: string;
            type?: components["schemas"]["FieldType"];
        };
        /** @enum {string} */
        FieldType: "any" | "boolean" | "long" | "double" | "varchar" | "datetime" | "object" | "array";
        FindAnswer: {
            cursor?: string;
            entries: components["schemas"]["EntryView"][];
            /** Format: uint64 */
            examined: number;
            /** Format: uint64 */
            index: number;
            index_used?: string[];
            revision: string;
        };
        FindRequest: {
            consistency?: components["schemas"]["ReadConsistency"];
            cursor?: string;
            fields?: string[];
            keys_only?: boolean;
            /** Format: int32 */
            limit?: number;
            min_revision?: string | number;
            order_by?: string[];
            prefix?: string;
            revision?: string | number;
            where?: components["schemas"]["Criterion"][];
        };
        FullIndexRule: {
            fields: string[];
            unique?: boolean;
        };
        Grant: {
            permission: components["schemas"]["Permission"];
            prefix: string;
        };
        Guard: {
            election?: string;
            lock?: string;
            token: string | number;
        };
        IndexRule: string[] | components["schemas"]["FullIndexRule"];
        /** @enum {string} */
        IndexState: "building" | "ready" | "failed";
        IndexView: {
            detail?: string;
            fields: string[];
            state: components["schemas"]["IndexState"];
            unique: boolean;
        };
        InputFault: {
            detail: string;
            pointer: string;
        };
        InvitationCreated: {
            /** Format: uint64 */
            for_ms: number;
            id: string;
            /** Format: uint64 */
            index: number;
            /** Format: uint64 */
            node_id?: number;
            revision: string;
            standby?: boolean;
            token: string;
        };
        InvitationList: {
            /** Format: uint64 */
            index: number;
            invitations: components["schemas"]["InvitationView"][];
            revision: string;
        };
        InvitationRequest: {
            /** Format: uint64 */
            for_ms?: number;
            /** Format: uint64 */
            node_id?: number;
            request_id?: string;
            standby?: boolean;
        };
        InvitationRevoked: {
            id: string;
            /** Format: uint64 */
            index: number;
            replayed?: boolean;
            revision: string;
        };
        InvitationView: {
            /** Format: date-time */
            created: string;
            id: string;
            /** Format: uint64 */
            left_ms: number;
            /** Format: uint64 */
            node_id?: number;
            standby?: boolean;
            /** Format: uint64 */
            used_by?: number;
        };
        LatchAnswer: {
            /** Format: uint64 */
            count: number;
            /** Format: uint64 */
            index: number;
            latch: string;
            /** Format: uint64 */
            left: number;
            open: boolean;
            opened_revision?: string;
            replayed?: boolean;
            revision: string;
        };
        LatchRemoved: {
            /** Format: uint64 */
            index: number;
            latch: string;
            replayed?: boolean;
            revision: string;
        };
        LatchRequest: {
            /** Format: uint64 */
            count?: number;
            request_id?: string;
        };
        LeaderAnswer: {
            /** Format: uint64 */
            leader_id: number;
        };
        LeaderEvent: {
            election: string;
            owner: string;
            revision: string;
            session: string;
            /** Format: date-time */
            since: string;
            term: string;
            value?: unknown;
        };
        LeaderRequest: {
            /** Format: uint64 */
            to?: number;
        };
        LeaderView: {
            /** Format: uint64 */
            age_ms: number;
            owner: string;
            session: string;
            /** Format: date-time */
            since: string;
            term: string;
            value?: unknown;
        };
        LeaveRequest: {
            request_id?: string;
            session: string;
            /** Format: uint64 */
            wait_ms?: number;
        };
        LimitsAnswer: {
            /** Format: uint64 */
            body_bytes: number;
            /** Format: uint64 */
            bulk_body_bytes: number;
            /** Format: uint64 */
            bulk_operations: number;
            /** Format: uint64 */
            find_entries: number;
            /** Format: uint64 */
            key_bytes: number;
            /** Format: uint64 */
            list_entries: number;
            /** Format: uint64 */
            lock_ms: number;
            /** Format: uint64 */
            session_ttl_ms: number;
            /** Format: uint64 */
            ttl_ms: number;
            /** Format: uint64 */
            txn_steps: number;
            /** Format: uint64 */
            value_bytes: number;
        };
        ListAnswer: {
            /** Format: uint64 */
            count: number;
            cursor?: string;
            entries: components["schemas"]["EntryView"][];
            /** Format: uint64 */
            index: number;
            revision: string;
        };
        LockAnswer: {
            /** Format: uint64 */
            delay_left_ms: number;
            /** Format: uint64 */
            holder_count: number;
            holders: components["schemas"]["LockHolder"][];
            /** Format: uint64 */
            index: number;
            lock: string;
            mode?: components["schemas"]["LockMode"];
            queue: components["schemas"]["LockWaiter"][];
            revision: string;
            /** Format: int32 */
            slots: number;
            /** Format: uint64 */
            waiter_count: number;
        };
        LockHolder: {
            /** Format: uint64 */
            age_ms: number;
            mode: components["schemas"]["LockMode"];
            owner: string;
            session: string;
            token: string;
        };
        LockList: {
            cursor?: string;
            /** Format: uint64 */
            index: number;
            locks: components["schemas"]["LockSummary"][];
            revision: string;
        };
        /** @enum {string} */
        LockMode: "exclusive" | "shared";
        /** @enum {string} */
        LockState: "held" | "waiting";
        LockSummary: {
            /** Format: uint64 */
            holder_count: number;
            lock: string;
            /** Format: int32 */
            slots: number;
            /** Format: uint64 */
            waiter_count: number;
        };
        LockWaiter: {
            /** Format: uint64 */
            age_ms: number;
            mode: components["schemas"]["LockMode"];
            owner: string;
            place: string;
            session: string;
            /** Format: uint64 */
            wait_left_ms: number;
        };
        Member: {
            client_addr: string;
            healthy: boolean;
            /** Format: uint64 */
            id: number;
            /** Format: uint64 */
            lag?: number;
            /** Format: uint64 */
            last_contact_ms?: number;
            leader: boolean;
            peer_addr: string;
            role: components["schemas"]["MemberRole"];
        };
        /** @enum {string} */
        MemberRole: "voter" | "learner";
        MemberView: {
            client_addr: string;
            /** Format: uint64 */
            id: number;
            /** Format: uint64 */
            last_contact_ms?: number;
            /** Format: uint64 */
            matched_index?: number;
            peer_addr: string;
            voter: boolean;
        };
        MembersAnswer: {
            changing: boolean;
            /** Format: uint64 */
            leader_id: number;
            members: components["schemas"]["Member"][];
            /** Format: uint64 */
            needed: number;
            prospect: string;
        };
        MembersChanged: {
            changed: boolean;
            dry_run: boolean;
            explanation: string[];
            learners: number[];
            voters: number[];
        };
        Moment: string | number;
        NodeCaller: {
            /** Format: uint64 */
            held: number;
            kind: components["schemas"]["NodeCallerKind"];
            name?: string;
        };
        /** @enum {string} */
        NodeCallerKind: "user" | "address" | "local_user" | "strangers";
        NodeCallersAnswer: {
            /** Format: uint64 */
            node_id: number;
            resources: components["schemas"]["NodeResource"][];
        };
        NodeConfigAnswer: {
            /** Format: uint64 */
            node_id: number;
            settings: {
                [key: string]: string;
            };
            version: string;
        };
        NodeLogAnswer: {
            configured: string;
            filter: string;
            /** Format: uint64 */
            node_id: number;
        };
        NodeLogLinesAnswer: {
            lines: string[];
            /** Format: uint64 */
            node_id: number;
        };
        NodeLogRequest: {
            filter?: string;
            /** Format: uint64 */
            for_ms?: number;
        };
        NodeResource: {
            /** Format: uint64 */
            bound: number;
            callers: components["schemas"]["NodeCaller"][];
            /** Format: uint64 */
            held_up?: number;
            late?: boolean;
            /** Format: uint64 */
            refused: number;
            resource: components["schemas"]["NodeResourceKind"];
            /** Format: uint64 */
            share: number;
            /** Format: uint64 */
            share_refused: number;
            /** Format: uint64 */
            taken: number;
        };
        /** @enum {string} */
        NodeResourceKind: "waits" | "watches" | "arriving" | "bodies" | "answers" | "values" | "stream_ops" | "connections" | "coordination" | "point" | "scan" | "processors";
        Op: {
            cas?: string;
            dry_run?: boolean;
            guard?: components["schemas"]["Guard"];
            if?: Record<string, never>[];
            key: string;
            /** Format: uint64 */
            lock_ms?: number;
            op: components["schemas"]["OpKind"];
            patch?: unknown;
            prev?: boolean;
            request_id?: string;
            session?: string;
            ttl?: components["schemas"]["TtlRule"];
            /** Format: uint64 */
            ttl_ms?: number;
            value?: unknown;
            value_base64?: string;
            /** Format: uint64 */
            wait_ms?: number;
        };
        OpAnswer: components["schemas"]["WriteAnswer"] | components["schemas"]["EntryView"];
        /** @enum {string} */
        OpKind: "get" | "insert" | "upsert" | "replace" | "update" | "remove" | "touch" | "get_and_touch" | "lock" | "get_and_lock" | "extend" | "unlock";
        OpLine: {
            /** Format: uint64 */
            n: number;
            op: components["schemas"]["Op"];
            /** Format: uint64 */
            timeout_ms?: number;
        };
        /** @enum {string} */
        Operator: "eq" | "neq" | "lt" | "lte" | "gt" | "gte" | "in" | "nin" | "between" | "exists" | "nexists" | "contains" | "ncontains" | "starts" | "ends" | "like";
        ParkedWork: {
            at: string;
            /** Format: uint64 */
            index: number;
            kind: string;
            revision: string;
            subject: string;
            work: string;
        };
        /** @enum {string} */
        Permission: "read" | "write" | "lock" | "admin" | "backup" | "monitor";
        Predicate: {
            field: string;
            op: components["schemas"]["Operator"];
            value?: unknown;
        };
        Problem: {
            applied: components["schemas"]["Applied"];
            code: components["schemas"]["ErrorCode"];
            current?: components["schemas"]["EntryView"];
            detail: string;
            errors?: components["schemas"]["InputFault"][];
            failed?: components["schemas"]["Failed"][];
            /** Format: uint64 */
            holders?: number;
            /** Format: uint64 */
            index?: number;
            oldest_revision?: string;
            quota?: components["schemas"]["QuotaExceeded"];
            replayed?: boolean;
            request_id: string;
            retry: components["schemas"]["Retry"];
            /** Format: uint64 */
            retry_after_ms?: number;
            revision?: string;
            /** Format: int32 */
            status: number;
            title: string;
            type: string;
            /** Format: uint64 */
            waiters?: number;
        };
        ProclaimAnswer: {
            election: string;
            /** Format: uint64 */
            index: number;
            replayed?: boolean;
            revision: string;
            term: string;
        };
        ProclaimRequest: {
            request_id?: string;
            term: string | number;
            value: unknown;
        };
        QueueList: {
            cursor?: string;
            /** Format: uint64 */
            index: number;
            queues: components["schemas"]["QueueStats"][];
            revision: string;
        };
        QueueStats: {
            /** Format: uint64 */
            cancelled_total: number;
            /** Format: uint64 */
            claimed: number;
            /** Format: uint64 */
            completed_total: number;
            /** Format: uint64 */
            dead: number;
            /** Format: uint64 */
            died_total: number;
            /** Format: uint64 */
            done: number;
            /** Format: uint64 */
            failed_total: number;
            /** Format: uint64 */
            index?: number;
            next_at?: string;
            queue: string;
            revision?: string;
            /** Format: uint64 */
            scheduled: number;
            /** Format: uint64 */
            unplanned: number;
        };
        QuotaAmounts: {
            /** Format: uint64 */
            bytes?: number;
            /** Format: uint64 */
            entries?: number;
            /** Format: uint64 */
            locks?: number;
            /** Format: uint64 */
            sessions?: number;
            /** Format: uint64 */
            tasks?: number;
        };
        QuotaAnswer: {
            bounds: components["schemas"]["QuotaAmounts"];
            /** Format: date-time */
            created?: string;
            /** Format: uint64 */
            index?: number;
            is_default?: boolean;
            prefix?: string;
            principal?: string;
            replayed?: boolean;
            revision?: string;
            set_revision?: string;
            state?: components["schemas"]["QuotaState"];
            used?: components["schemas"]["QuotaAmounts"];
        };
        QuotaExceeded: {
            /** Format: uint64 */
            bound: number;
            counts: string;
            prefix?: string;
            principal?: string;
            /** Format: uint64 */
            used: number;
        };
        QuotaList: {
            cursor?: string;
            /** Format: uint64 */
            index: number;
            quotas: components["schemas"]["QuotaAnswer"][];
            revision: string;
        };
        QuotaRemoved: {
            /** Format: uint64 */
            index: number;
            prefix?: string;
            principal?: string;
            replayed?: boolean;
            revision: string;
        };
        QuotaRequest: {
            /** Format: uint64 */
            bytes?: number;
            /** Format: uint64 */
            entries?: number;
            /** Format: uint64 */
            locks?: number;
            request_id?: string;
            /** Format: uint64 */
            sessions?: number;
            /** Format: uint64 */
            tasks?: number;
        };
        /** @enum {string} */
        QuotaState: "enforced" | "counting";
        ReadAnswer: components["schemas"]["EntryView"] | unknown;
        /** @enum {string} */
        ReadConsistency: "linearizable" | "local";
        ReleaseAnswer: {
            /** Format: uint64 */
            index: number;
            lock: string;
            released: boolean;
            replayed?: boolean;
            revision: string;
        };
        ReleaseRequest: {
            request_id?: string;
            session?: string;
            token?: string | number;
        };
        RenewAnswer: {
            /** Format: uint64 */
            index: number;
            revision: string;
            sessions: components["schemas"]["Renewal"][];
        };
        RenewRequest: {
            sessions: string[];
        };
        Renewal: components["schemas"]["SessionRenewed"] | components["schemas"]["SessionExpired"];
        RenewedAnswer: {
            /** Format: uint64 */
            expires_in_ms: number;
            /** Format: uint64 */
            index: number;
            /** Format: uint64 */
            renew_in_ms: number;
            revision: string;
            session: string;
            /** Format: uint64 */
            ttl_ms: number;
        };
        RepairAnswer: {
            /** Format: uint64 */
            node_id: number;
            repaired: boolean;
        };
        ReplaceMemberRequest: {
            /** Format: uint64 */
            with: number;
        };
        RequestAnswer: {
            cas?: string;
            code?: components["schemas"]["ErrorCode"];
            /** Format: uint64 */
            decided_index: number;
            decided_revision: string;
            /** Format: uint64 */
            index: number;
            request_id: string;
            revision: string;
            state: components["schemas"]["RequestState"];
        };
        /** @enum {string} */
        RequestState: "applied" | "rejected";
        ResignAnswer: {
            election: string;
            /** Format: uint64 */
            index: number;
            replayed?: boolean;
            resigned: boolean;
            revision: string;
        };
        ResignRequest: {
            request_id?: string;
            session?: string;
            term?: string | number;
        };
        /** @enum {string} */
        Retry: "after_reading" | "same_request_id" | "never";
        /** @enum {string} */
        Role: "leader" | "follower" | "candidate" | "learner" | "outside";
        RoleAnswer: {
            /** Format: date-time */
            created: string;
            grants: components["schemas"]["Grant"][];
            /** Format: uint64 */
            index?: number;
            replayed?: boolean;
            revision?: string;
            role: string;
            set_revision: string;
        };
        RoleList: {
            cursor?: string;
            /** Format: uint64 */
            index: number;
            revision: string;
            roles: components["schemas"]["RoleAnswer"][];
        };
        RoleRemoved: {
            /** Format: uint64 */
            index: number;
            replayed?: boolean;
            revision: string;
            role: string;
        };
        RoleRequest: {
            grants: components["schemas"]["Grant"][];
            request_id?: string;
        };
        ScheduleAnswer: components["schemas"]["TaskScheduled"] | components["schemas"]["TasksScheduled"];
        ScheduleRequest: components["schemas"]["TaskSpecs"] | components["schemas"]["TaskSpec"];
        SelfAnswer: {
            access_revision: string;
            grants: components["schemas"]["Grant"][];
            user?: string;
        };
        SequenceAnswer: {
            /** Format: uint64 */
            index: number;
            name: string;
            revision: string;
            /** Format: uint64 */
            value: number;
        };
        SequenceNext: {
            /** Format: uint64 */
            first: number;
            /** Format: uint64 */
            index: number;
            /** Format: uint64 */
            last: number;
            name: string;
            replayed?: boolean;
            revision: string;
        };
        SequenceRequest: {
            /** Format: uint64 */
            count?: number;
            request_id?: string;
        };
        SessionAnswer: {
            /** Format: uint64 */
            expires_in_ms: number;
            /** Format: uint64 */
            index: number;
            labels: {
                [key: string]: string;
            };
            owner: string;
            /** Format: uint64 */
            renew_in_ms: number;
            replayed?: boolean;
            revision: string;
            session: string;
            /** Format: uint64 */
            ttl_ms: number;
        };
        SessionEnded: {
            /** Format: uint64 */
            count: number;
            ended: boolean;
            /** Format: uint64 */
            index: number;
            replayed?: boolean;
            revision: string;
            session: string;
        };
        SessionExpired: {
            expired: boolean;
            session: string;
        };
        SessionHold: {
            name: string;
            place?: string;
            state: components["schemas"]["LockState"];
            token?: string;
        };
        SessionHolds: {
            barriers: string[];
            /** Format: uint64 */
            count: number;
            elections: components["schemas"]["SessionHold"][];
            keys: string[];
            locks: components["schemas"]["SessionHold"][];
            tasks?: string[];
        };
        SessionList: {
            cursor?: string;
            /** Format: uint64 */
            index: number;
            revision: string;
            sessions: components["schemas"]["SessionView"][];
        };
        SessionRenewed: {
            /** Format: uint64 */
            expires_in_ms: number;
            /** Format: uint64 */
            renew_in_ms: number;
            session: string;
            /** Format: uint64 */
            ttl_ms: number;
        };
        SessionRequest: {
            labels?: {
                [key: string]: string;
            };
            owner?: string;
            request_id?: string;
            /** Format: uint64 */
            ttl_ms?: number;
        };
        SessionView: {
            /** Format: uint64 */
            age_ms: number;
            /** Format: date-time */
            created: string;
            /** Format: uint64 */
            expires_in_ms: number;
            holds?: components["schemas"]["SessionHolds"];
            /** Format: uint64 */
            index?: number;
            labels: {
                [key: string]: string;
            };
            owner: string;
            revision?: string;
            session: string;
            /** Format: uint64 */
            ttl_ms: number;
        };
        StatusAnswer: {
            /** Format: uint64 */
            applied_index: number;
            /** Format: uint64 */
            cluster_clock_ms: number;
            cluster_id: string;
            /** Format: uint64 */
            committed_index: number;
            digest: string;
            /** Format: uint64 */
            disk_free_bytes?: number;
            /** Format: uint64 */
            disk_size_bytes?: number;
            /** Format: uint64 */
            entries?: number;
            /** Format: uint64 */
            epoch?: number;
            epoch_revision?: string;
            /** Format: uint64 */
            history_bytes?: number;
            incarnation: string;
            /** Format: uint64 */
            last_log_index: number;
            leader_client_addr?: string;
            /** Format: uint64 */
            leader_id?: number;
            /** Format: int32 */
            level?: number;
            /** Format: int32 */
            level_known?: number;
            members: components["schemas"]["MemberView"][];
            /** Format: uint64 */
            node_id: number;
            oldest_revision: string;
            /** Format: uint64 */
            purged_index: number;
            /** Format: uint64 */
            quota_bytes?: number;
            ready: boolean;
            revision: string;
            role: components["schemas"]["Role"];
            /** Format: uint64 */
            snapshot_index: number;
            /** Format: uint64 */
            stored_bytes?: number;
            term: string;
            version: string;
            warnings?: string[];
        };
        TaskAnswer: {
            /** Format: int32 */
            attempts: number;
            execute_at?: string;
            id: string;
            /** Format: uint64 */
            index: number;
            /** Format: uint64 */
            lease_ms?: number;
            /** Format: int32 */
            max_attempts: number;
            replayed?: boolean;
            revision: string;
            state: components["schemas"]["TaskState"];
        };
        TaskBackoff: {
            /** Format: double */
            factor?: number;
            /** Format: uint64 */
            initial_ms?: number;
            /** Format: uint64 */
            max_ms?: number;
        };
        TaskCancel: {
            id: string;
            request_id?: string;
        };
        TaskClaim: {
            /** Format: uint64 */
            lease_ms?: number;
            /** Format: int32 */
            limit?: number;
            request_id?: string;
            session?: string;
            /** Format: uint64 */
            wait_ms?: number;
            worker?: string;
        };
        TaskClaimAnswer: {
            /** Format: uint64 */
            count: number;
            /** Format: uint64 */
            index: number;
            next_at?: string;
            replayed?: boolean;
            revision: string;
            tasks: components["schemas"]["TaskClaimed"][];
            /** Format: uint64 */
            waited_ms: number;
        };
        TaskClaimed: {
            /** Format: int32 */
            attempt: number;
            execute_at: string;
            id: string;
            last_error?: string;
            /** Format: uint64 */
            lease_ms: number;
            /** Format: int32 */
            max_attempts: number;
            payload?: unknown;
            payload_base64?: string;
            planned_at: string;
            token: string;
        };
        TaskComplete: {
            id: string;
            request_id?: string;
            token: string | number;
        };
        TaskExtend: {
            id: string;
            /** Format: uint64 */
            lease_ms?: number;
            request_id?: string;
            token: string | number;
        };
        TaskFail: {
            dead?: boolean;
            error?: string;
            id: string;
            release?: boolean;
            request_id?: string;
            /** Format: uint64 */
            retry_in_ms?: number;
            token: string | number;
        };
        TaskList: {
            cursor?: string;
            /** Format: uint64 */
            index: number;
            revision: string;
            tasks: components["schemas"]["TaskView"][];
        };
        TaskRequeue: {
            id?: string;
            /** Format: int32 */
            limit?: number;
            request_id?: string;
        };
        TaskScheduled: {
            /** Format: int32 */
            attempts: number;
            created: boolean;
            dry_run?: boolean;
            execute_at?: string;
            id: string;
            /** Format: uint64 */
            index?: number;
            /** Format: int32 */
            max_attempts: number;
            replaced?: boolean;
            replayed?: boolean;
            revision?: string;
            state: components["schemas"]["TaskState"];
        };
        TaskSpec: {
            backoff?: components["schemas"]["TaskBackoff"];
            cron?: string;
            /** Format: uint64 */
            delay_ms?: number;
            dry_run?: boolean;
            /** Format: uint64 */
            every_ms?: number;
            execute_at?: components["schemas"]["Moment"];
            id?: string;
            /** Format: uint64 */
            keep_ms?: number;
            /** Format: int32 */
            max_attempts?: number;
            payload?: unknown;
            payload_base64?: string;
            replace?: boolean;
            request_id?: string;
            zone?: string;
        };
        TaskSpecs: {
            dry_run?: boolean;
            request_id?: string;
            tasks: components["schemas"]["TaskSpec"][];
        };
        /** @enum {string} */
        TaskState: "scheduled" | "claimed" | "dead" | "unplanned" | "done" | "gone";
        TaskView: {
            /** Format: int32 */
            attempts: number;
            backoff: components["schemas"]["TaskBackoff"];
            created_at: string;
            cron?: string;
            died_at?: string;
            /** Format: uint64 */
            every_ms?: number;
            execute_at?: string;
            id: string;
            /** Format: uint64 */
            index?: number;
            /** Format: uint64 */
            kept_ms?: number;
            last_error?: string;
            /** Format: uint64 */
            lease_ms?: number;
            /** Format: int32 */
            max_attempts: number;
            payload?: unknown;
            payload_base64?: string;
            revision?: string;
            /** Format: uint64 */
            runs: number;
            session?: string;
            state: components["schemas"]["TaskState"];
            worker?: string;
            zone?: string;
        };
        TasksRequeued: {
            /** Format: uint64 */
            count: number;
            /** Format: uint64 */
            index: number;
            more: boolean;
            replayed?: boolean;
            revision: string;
        };
        TasksScheduled: {
            /** Format: uint64 */
            created: number;
            dry_run?: boolean;
            /** Format: uint64 */
            index: number;
            replayed?: boolean;
            revision: string;
            tasks: components["schemas"]["TaskScheduled"][];
        };
        TokenCreated: {
            /** Format: date-time */
            expires?: string;
            id: string;
            /** Format: uint64 */
            index: number;
            revision: string;
            token: string;
            user: string;
        };
        TokenList: {
            cursor?: string;
            /** Format: uint64 */
            index: number;
            revision: string;
            tokens: components["schemas"]["TokenView"][];
        };
        TokenRemoved: {
            id: string;
            /** Format: uint64 */
            index: number;
            replayed?: boolean;
            revision: string;
        };
        TokenRequest: {
            /** Format: uint64 */
            expires_in_ms?: number;
            note?: string;
            request_id?: string;
            user: string;
        };
        TokenView: {
            /** Format: date-time */
            created: string;
            expired?: boolean;
            /** Format: date-time */
            expires?: string;
            id: string;
            note: string;
            user: string;
        };
        /** @enum {string} */
        TtlRule: "keep";
        TxnAnswer: {
            dry_run?: boolean;
            failed?: components["schemas"]["TxnFailed"][];
            /** Format: uint64 */
            index: number;
            replayed?: boolean;
            results: components["schemas"]["TxnResult"][];
            revision: string;
            succeeded: boolean;
        };
        TxnBlock: {
            else?: components["schemas"]["TxnStep"][];
            if?: components["schemas"]["TxnCheck"][];
            op: components["schemas"]["TxnTag"];
            then?: components["schemas"]["TxnStep"][];
        };
        TxnBlockResult: {
            failed?: components["schemas"]["TxnFailed"][];
            op: components["schemas"]["TxnTag"];
            results: components["schemas"]["TxnResult"][];
            succeeded: boolean;
        };
        TxnCheck: {
            cas?: string;
            exists?: boolean;
            if?: components["schemas"]["Criterion"][];
            key: string;
        };
        TxnFailed: {
            current?: components["schemas"]["EntryView"];
            detail: string;
            failed?: components["schemas"]["Failed"][];
            key: string;
            pointer: string;
        };
        TxnRead: {
            entry: components["schemas"]["EntryView"] | null;
            key: string;
            op: components["schemas"]["OpKind"];
        };
        TxnRequest: {
            dry_run?: boolean;
            else?: components["schemas"]["TxnStep"][];
            if?: components["schemas"]["TxnCheck"][];
            request_id?: string;
            then?: components["schemas"]["TxnStep"][];
        };
        TxnResult: components["schemas"]["TxnRead"] | components["schemas"]["TxnWritten"] | components["schemas"]["TxnBlockResult"];
        TxnStep: components["schemas"]["Op"] | components["schemas"]["TxnBlock"];
        /** @enum {string} */
        TxnTag: "txn";
        TxnWritten: {
            cas?: string;
            create_revision?: string;
            key: string;
            /** Format: uint64 */
            lock_ms?: number;
            op: components["schemas"]["OpKind"];
            prev?: components["schemas"]["EntryView"];
            revision: string;
            /** Format: uint64 */
            ttl_ms?: number;
            /** Format: uint64 */
            version?: number;
        };
        UserAnswer: {
            /** Format: date-time */
            created: string;
            /** Format: uint64 */
            index?: number;
            replayed?: boolean;
            revision?: string;
            roles: string[];
            set_revision: string;
            user: string;
        };
        UserList: {
            cursor?: string;
            /** Format: uint64 */
            index: number;
            revision: string;
            users: components["schemas"]["UserAnswer"][];
        };
        UserRemoved: {
            /** Format: uint64 */
            index: number;
            replayed?: boolean;
            revision: string;
            /** Format: uint64 */
            tokens: number;
            user: string;
        };
        UserRequest: {
            request_id?: string;
            roles: string[];
        };
        VersionAnswer: {
            api: string;
            etcdcluster?: string;
            etcdserver?: string;
            version: string;
        };
        WatchEnd: {
            code: components["schemas"]["WatchEndCode"];
            detail: string;
            oldest_revision?: string;
            revision?: string;
        };
        /** @enum {string} */
        WatchEndCode: "compacted" | "slow_consumer" | "no_leader" | "stopping" | "quarantined" | "permission_denied" | "unauthenticated" | "too_dear" | "not_ready" | "timeout" | "too_many_requests" | "internal";
        WatchEvent: {
            cause?: components["schemas"]["DeleteCause"];
            entry?: components["schemas"]["EntryView"];
            /** Format: int32 */
            index?: number;
            initial?: boolean;
            key: string;
            prev?: components["schemas"]["EntryView"];
            revision: string;
            type: components["schemas"]["WatchEventKind"];
        };
        /** @enum {string} */
        WatchEventKind: "put" | "delete";
        WatchProgress: {
            revision: string;
        };
        WatchReset: {
            code?: components["schemas"]["ErrorCode"];
            detail?: string;
            revision: string;
        };
        WhereAnswer: {
            /** Format: uint64 */
            applied: number;
            cursor?: string;
            dry_run?: boolean;
            /** Format: uint64 */
            examined: number;
            /** Format: uint64 */
            failed: number;
            /** Format: uint64 */
            index: number;
            left_out?: boolean;
            /** Format: uint64 */
            matched: number;
            replayed?: boolean;
            results: components["schemas"]["BulkResult"][];
            revision: string;
            /** Format: uint64 */
            skipped: number;
        };
        WhereRequest: {
            cursor?: string;
            dry_run?: boolean;
            guard?: components["schemas"]["Guard"];
            if?: components["schemas"]["Criterion"][];
            /** Format: int32 */
            limit?: number;
            patch?: unknown;
            prefix: string;
            request_id?: string;
            /** Format: uint64 */
            ttl_ms?: number;
            where: components["schemas"]["Criterion"][];
        };
        WriteAnswer: {
            cas?: string;
            create_revision?: string;
            dry_run?: boolean;
            /** Format: uint64 */
            index: number;
            key: string;
            /** Format: uint64 */
            lock_ms?: number;
            prev?: components["schemas"]["EntryView"];
            replayed?: boolean;
            revision: string;
            /** Format: uint64 */
            ttl_ms?: number;
            /** Format: uint64 */
            version?: number;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    root: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
    console_entry: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
    console: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
        };
    };
    error: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
        };
    };
    livez: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
        };
    };
    metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/openmetrics-text": string;
                };
            };
        };
    };
    openapi: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    readyz: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
        };
    };
    may: {
        parameters: {
            query: {
                permission: components["schemas"]["Permission"];
                name?: string;
                prefix?: string;
                user?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AccessCheckAnswer"];
                };
            };
        };
    };
    roles: {
        parameters: {
            query?: {
                limit?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RoleList"];
                };
            };
        };
    };
    role: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RoleAnswer"];
                };
            };
        };
    };
    put_role: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RoleRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RoleAnswer"];
                };
            };
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RoleAnswer"];
                };
            };
        };
    };
    delete_role: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RoleRemoved"];
                };
            };
        };
    };
    who_am_i: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SelfAnswer"];
                };
            };
        };
    };
    tokens: {
        parameters: {
            query?: {
                limit?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenList"];
                };
            };
        };
    };
    create_token: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TokenRequest"];
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenCreated"];
                };
            };
        };
    };
    delete_token: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenRemoved"];
                };
            };
        };
    };
    users: {
        parameters: {
            query?: {
                limit?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserList"];
                };
            };
        };
    };
    user: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserAnswer"];
                };
            };
        };
    };
    put_user: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UserRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserAnswer"];
                };
            };
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserAnswer"];
                };
            };
        };
    };
    delete_user: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserRemoved"];
                };
            };
        };
    };
    audit: {
        parameters: {
            query: {
                key: string;
                from?: number;
                limit?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditAnswer"];
                };
            };
        };
    };
    barrier: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BarrierAnswer"];
                };
            };
        };
    };
    enter_barrier: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EnterRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BarrierAnswer"];
                };
            };
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BarrierAnswer"];
                };
            };
        };
    };
    leave_barrier: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LeaveRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BarrierAnswer"];
                };
            };
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BarrierAnswer"];
                };
            };
        };
    };
    bulk: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BulkRequest"];
                "application/x-ndjson": components["schemas"]["Op"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BulkAnswer"];
                };
            };
        };
    };
    claim: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ClaimRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClaimAnswer"];
                };
            };
        };
    };
    backup: {
        parameters: {
            query?: {
                consistency?: "linearizable" | "local";
                min_revision?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/vnd.quorate.backup": number[];
                };
            };
        };
    };
    digest: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DigestAnswer"];
                };
            };
        };
    };
    faults: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FaultsAnswer"];
                };
            };
        };
    };
    handle_faults: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FaultsRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FaultsReply"];
                };
            };
        };
    };
    invitations: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InvitationList"];
                };
            };
        };
    };
    invite_member: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["InvitationRequest"];
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InvitationCreated"];
                };
            };
        };
    };
    revoke_invitation: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InvitationRevoked"];
                };
            };
        };
    };
    lead: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LeaderRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LeaderAnswer"];
                };
            };
        };
    };
    members: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MembersAnswer"];
                };
            };
        };
    };
    add_member: {
        parameters: {
            query?: {
                dry_run?: boolean;
                force?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AddMemberRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MembersChanged"];
                };
            };
        };
    };
    remove_member: {
        parameters: {
            query?: {
                dry_run?: boolean;
                force?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MembersChanged"];
                };
            };
        };
    };
    demote_member: {
        parameters: {
            query?: {
                dry_run?: boolean;
                force?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MembersChanged"];
                };
            };
        };
    };
    promote_member: {
        parameters: {
            query?: {
                dry_run?: boolean;
                force?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MembersChanged"];
                };
            };
        };
    };
    repair_member: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RepairAnswer"];
                };
            };
        };
    };
    replace_member: {
        parameters: {
            query?: {
                dry_run?: boolean;
                force?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReplaceMemberRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MembersChanged"];
                };
            };
        };
    };
    status: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StatusAnswer"];
                };
            };
        };
    };
    collections: {
        parameters: {
            query?: {
                limit?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CollectionList"];
                };
            };
        };
    };
    collection: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CollectionAnswer"];
                };
            };
        };
    };
    put_collection: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CollectionRules"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CollectionAnswer"];
                };
            };
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CollectionAnswer"];
                };
            };
        };
    };
    delete_collection: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CollectionRemoved"];
                };
            };
        };
    };
    count: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CountRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CountAnswer"];
                };
            };
        };
    };
    delete_where: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WhereRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WhereAnswer"];
                };
            };
        };
    };
    elections: {
        parameters: {
            query?: {
                limit?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ElectionList"];
                };
            };
        };
    };
    election: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ElectionAnswer"];
                };
            };
        };
    };
    campaign: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CampaignRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CampaignAnswer"];
                };
            };
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CampaignAnswer"];
                };
            };
        };
    };
    observe_election: {
        parameters: {
            query?: {
                heartbeat_ms?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["LeaderEvent"];
                };
            };
        };
    };
    proclaim: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ProclaimRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProclaimAnswer"];
                };
            };
        };
    };
    resign: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ResignRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResignAnswer"];
                };
            };
        };
    };
    find: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FindRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FindAnswer"];
                };
            };
        };
    };
    list: {
        parameters: {
            query?: {
                prefix?: string;
                start?: string;
                end?: string;
                limit?: number;
                cursor?: string;
                keys_only?: boolean;
                sizes?: boolean;
                count_only?: boolean;
                reverse?: boolean;
                part?: number;
                of?: number;
                revision?: number;
                consistency?: "linearizable" | "local";
                min_revision?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListAnswer"];
                };
            };
        };
    };
    get: {
        parameters: {
            query?: {
                raw?: boolean;
                consistency?: "linearizable" | "local";
                min_revision?: number;
                revision?: number;
                wait_ms?: number;
                if_none_match?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadAnswer"];
                    "application/octet-stream": string;
                };
            };
        };
    };
    put: {
        parameters: {
            query?: {
                ttl_ms?: number;
                ttl?: string;
                session?: string;
                prev?: boolean;
                dry_run?: boolean;
                if?: string[];
                guard_lock?: string;
                guard_election?: string;
                guard_token?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": unknown;
                "application/octet-stream": string;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpAnswer"];
                };
            };
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpAnswer"];
                };
            };
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    delete: {
        parameters: {
            query?: {
                prev?: boolean;
                dry_run?: boolean;
                if?: string[];
                guard_lock?: string;
                guard_election?: string;
                guard_token?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WriteAnswer"];
                };
            };
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    patch: {
        parameters: {
            query?: {
                ttl_ms?: number;
                session?: string;
                prev?: boolean;
                dry_run?: boolean;
                if?: string[];
                guard_lock?: string;
                guard_election?: string;
                guard_token?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": Record<string, never>;
                "application/json-patch+json": Record<string, never>[];
                "application/merge-patch+json": Record<string, never>;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpAnswer"];
                };
            };
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    latch: {
        parameters: {
            query?: {
                wait_ms?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LatchAnswer"];
                };
            };
        };
    };
    put_latch: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LatchRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LatchAnswer"];
                };
            };
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LatchAnswer"];
                };
            };
        };
    };
    delete_latch: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LatchRemoved"];
                };
            };
        };
    };
    count_down: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CountDownRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LatchAnswer"];
                };
            };
        };
    };
    limits: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LimitsAnswer"];
                };
            };
        };
    };
    locks: {
        parameters: {
            query?: {
                limit?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LockList"];
                };
            };
        };
    };
    lock: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LockAnswer"];
                };
            };
        };
    };
    acquire: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AcquireRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AcquireAnswer"];
                };
            };
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AcquireAnswer"];
                };
            };
        };
    };
    check_lock: {
        parameters: {
            query: {
                token: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CheckAnswer"];
                };
            };
        };
    };
    release: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReleaseRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReleaseAnswer"];
                };
            };
        };
    };
    node_callers: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeCallersAnswer"];
                };
            };
        };
    };
    node_config: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeConfigAnswer"];
                };
            };
        };
    };
    node_log: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeLogAnswer"];
                };
            };
        };
    };
    set_node_log: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NodeLogRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeLogAnswer"];
                };
            };
        };
    };
    node_log_lines: {
        parameters: {
            query?: {
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeLogLinesAnswer"];
                };
            };
        };
    };
    op: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Op"];
                "application/x-ndjson": components["schemas"]["OpLine"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpAnswer"];
                    "application/x-ndjson": components["schemas"]["AnswerLine"];
                };
            };
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpAnswer"];
                };
            };
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    default_quota: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QuotaAnswer"];
                };
            };
        };
    };
    put_default_quota: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["QuotaRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QuotaAnswer"];
                };
            };
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QuotaAnswer"];
                };
            };
        };
    };
    delete_default_quota: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QuotaRemoved"];
                };
            };
        };
    };
    prefix_quotas: {
        parameters: {
            query?: {
                limit?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QuotaList"];
                };
            };
        };
    };
    prefix_quota: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QuotaAnswer"];
                };
            };
        };
    };
    put_prefix_quota: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["QuotaRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QuotaAnswer"];
                };
            };
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QuotaAnswer"];
                };
            };
        };
    };
    delete_prefix_quota: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QuotaRemoved"];
                };
            };
        };
    };
    principal_quotas: {
        parameters: {
            query?: {
                limit?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QuotaList"];
                };
            };
        };
    };
    principal_quota: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QuotaAnswer"];
                };
            };
        };
    };
    put_principal_quota: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["QuotaRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QuotaAnswer"];
                };
            };
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QuotaAnswer"];
                };
            };
        };
    };
    delete_principal_quota: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QuotaRemoved"];
                };
            };
        };
    };
    request: {
        parameters: {
            query?: {
                principal?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RequestAnswer"];
                };
            };
        };
    };
    sequence: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SequenceAnswer"];
                };
            };
        };
    };
    next_numbers: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SequenceRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SequenceNext"];
                };
            };
        };
    };
    sessions: {
        parameters: {
            query?: {
                limit?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionList"];
                };
            };
        };
    };
    create_session: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SessionRequest"];
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionAnswer"];
                };
            };
        };
    };
    renew_sessions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RenewRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RenewAnswer"];
                };
            };
        };
    };
    session: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionView"];
                };
            };
        };
    };
    end_session: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionEnded"];
                };
            };
        };
    };
    renew_session: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RenewedAnswer"];
                };
            };
        };
    };
    queues: {
        parameters: {
            query?: {
                limit?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QueueList"];
                };
            };
        };
    };
    tasks: {
        parameters: {
            query?: {
                state?: string;
                limit?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TaskList"];
                };
            };
        };
    };
    schedule_tasks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ScheduleRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleAnswer"];
                };
            };
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleAnswer"];
                };
            };
        };
    };
    cancel_task: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TaskCancel"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TaskAnswer"];
                };
            };
        };
    };
    claim_tasks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TaskClaim"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TaskClaimAnswer"];
                };
            };
        };
    };
    complete_task: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TaskComplete"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TaskAnswer"];
                };
            };
        };
    };
    extend_task: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TaskExtend"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TaskAnswer"];
                };
            };
        };
    };
    fail_task: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TaskFail"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TaskAnswer"];
                };
            };
        };
    };
    requeue_tasks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TaskRequeue"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TasksRequeued"];
                };
            };
        };
    };
    queue_stats: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QueueStats"];
                };
            };
        };
    };
    task: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TaskView"];
                };
            };
        };
    };
    txn: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TxnRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TxnAnswer"];
                };
            };
        };
    };
    update_where: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WhereRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WhereAnswer"];
                };
            };
        };
    };
    watch: {
        parameters: {
            query?: {
                key?: string;
                prefix?: string;
                start?: string;
                end?: string;
                part?: number;
                of?: number;
                from?: number;
                initial?: boolean;
                where?: string;
                events?: string;
                keys_only?: boolean;
                prev?: boolean;
                heartbeat_ms?: number;
                consistency?: "linearizable" | "local";
                min_revision?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["WatchEvent"];
                };
            };
        };
    };
    version: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VersionAnswer"];
                };
            };
        };
    };
}
