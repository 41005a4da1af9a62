//! From a path to its route.
//!
//! Owns which part of a path is its name. Never decodes it.

use super::Route;

/// The route of a path, and what follows its fixed part.
pub fn find(path: &str) -> (Route, &str) {
    if let Some(key) = path.strip_prefix("/v1/kv/") {
        return (Route::Key, key);
    }
    if let Some(id) = path.strip_prefix("/v1/requests/") {
        return (Route::Request, id);
    }
    if let Some(name) = path.strip_prefix("/v1/collections/") {
        return (Route::Collection, name);
    }
    if let Some(name) = path.strip_prefix("/v1/sequences/") {
        return (Route::Sequence, name);
    }
    if let Some(found) = find_named(path) {
        return found;
    }
    if let Some(rest) = path.strip_prefix("/v1/tasks/") {
        return find_task(rest);
    }
    if let Some(rest) = path.strip_prefix("/v1/cluster/members/") {
        return find_member(rest);
    }
    if let Some(rest) = path.strip_prefix("/v1/access/") {
        return find_access(rest);
    }
    let route = match path {
        "/v1/audit" => Route::Audit,
        "/v1/sessions" => Route::Sessions,
        "/v1/sessions/renew" => Route::SessionsRenew,
        "/v1/locks" => Route::Locks,
        "/v1/elections" => Route::Elections,
        "/v1/update_where" => Route::UpdateWhere,
        "/v1/delete_where" => Route::DeleteWhere,
        "/v1/claim" => Route::Claim,
        "/v1/watch" => Route::Watch,
        "/v1/tasks" => Route::TaskQueues,
        "/v1/collections" => Route::Collections,
        "/v1/kv" => Route::Keys,
        "/v1/ops" => Route::Ops,
        "/v1/bulk" => Route::Bulk,
        "/v1/txn" => Route::Txn,
        "/v1/find" => Route::Find,
        "/v1/count" => Route::Count,
        "/v1/cluster/status" => Route::ClusterStatus,
        "/v1/cluster/digest" => Route::ClusterDigest,
        "/v1/cluster/faults" => Route::ClusterFaults,
        "/v1/cluster/leader" => Route::Leader,
        "/v1/cluster/members" => Route::Members,
        "/v1/cluster/backup" => Route::Backup,
        "/livez" => Route::Livez,
        "/readyz" => Route::Readyz,
        "/metrics" => Route::Metrics,
        "/version" => Route::Version,
        "/openapi.json" => Route::OpenApi,
        _ => Route::Unknown,
    };
    (route, "")
}

/// The route of a path with a name in it that is followed by what is to be done; so a slash in the name is percent-encoded.
fn find_named(path: &str) -> Option<(Route, &str)> {
    let (kind, rest) = path.strip_prefix("/v1/")?.split_once('/')?;
    let (name, what) = rest.split_once('/').unwrap_or((rest, ""));
    let ends_with_slash = name.len() + 1 == rest.len();
    let route = match (kind, what) {
        ("sessions", "") if name != "renew" => Route::Session,
        ("sessions", "renew") => Route::SessionRenew,
        ("locks", "") => Route::Lock,
        ("locks", "acquire") => Route::LockAcquire,
        ("locks", "release") => Route::LockRelease,
        ("locks", "check") => Route::LockCheck,
        ("elections", "") => Route::Election,
        ("elections", "campaign") => Route::ElectionCampaign,
        ("elections", "proclaim") => Route::ElectionProclaim,
        ("elections", "resign") => Route::ElectionResign,
        ("elections", "observe") => Route::ElectionObserve,
        ("barriers", "") => Route::Barrier,
        ("barriers", "enter") => Route::BarrierEnter,
        ("barriers", "leave") => Route::BarrierLeave,
        ("latches", "") => Route::Latch,
        ("latches", "count_down") => Route::LatchCountDown,
        _ => return None,
    };
    (!ends_with_slash).then_some((route, name))
}

/// What is asked of a member, and its id.
fn find_member(rest: &str) -> (Route, &str) {
    let Some((id, what)) = rest.split_once('/') else { return (Route::Member, rest) };
    let route = match what {
        "promote" => Route::MemberPromote,
        "demote" => Route::MemberDemote,
        "replace" => Route::MemberReplace,
        "repair" => Route::MemberRepair,
        _ => return (Route::Unknown, ""),
    };
    (route, id)
}

/// What of access is asked for, and its name: all of the rest.
fn find_access(rest: &str) -> (Route, &str) {
    match rest.split_once('/') {
        Some(("users", name)) => (Route::AccessUser, name),
        Some(("roles", name)) => (Route::AccessRole, name),
        Some(("tokens", id)) => (Route::AccessToken, id),
        Some(_) => (Route::Unknown, ""),
        None => match rest {
            "users" => (Route::AccessUsers, ""),
            "roles" => (Route::AccessRoles, ""),
            "tokens" => (Route::AccessTokens, ""),
            "self" => (Route::AccessSelf, ""),
            _ => (Route::Unknown, ""),
        },
    }
}

/// What is asked of a queue, and the queue; of a task all of it. A queue is one segment.
fn find_task(rest: &str) -> (Route, &str) {
    let Some((queue, what)) = rest.split_once('/') else { return (Route::TaskQueue, rest) };
    let route = match what {
        "claim" => Route::TaskClaim,
        "extend" => Route::TaskExtend,
        "complete" => Route::TaskComplete,
        "fail" => Route::TaskFail,
        "cancel" => Route::TaskCancel,
        "requeue" => Route::TaskRequeue,
        "stats" => Route::TaskStats,
        _ if what.starts_with("task/") => return (Route::Task, rest),
        _ => return (Route::Unknown, ""),
    };
    (route, queue)
}
