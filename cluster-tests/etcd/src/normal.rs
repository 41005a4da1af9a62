//! Makes transcripts of different servers comparable.
//!
//! Owns what may differ between two servers that do the same: ids of clusters and members, terms, sizes, addresses and versions say
//! only that they are there. Leases are numbered in the order in which they appear. Revisions are numbered among those at which
//! something of this case changed: `r2` is the second one, and a header shows the last of them, for between them others may lie. A header
//! with an id of a cluster, of a member and a term is written as its revision alone. What the gateway says of a body that it cannot read is
//! each server's own.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::transcript::Step;

/// What stands for a value that differs from server to server.
const ANY: &str = "#";
/// How much of its life a lease may have lost when it is asked for it, in seconds.
const TTL_LOST_MAX: i64 = 10;

/// Revisions further away than that are so for every server.
const FAR: i64 = 1 << 20;

/// The steps of one case, comparable.
pub fn normal(mut steps: Vec<Step>) -> Vec<Step> {
    let mut names = Names::default();
    for step in &steps {
        names.collect(step);
    }
    for step in &mut steps {
        let service = Service::of(&step.call);
        for value in step.asked.iter_mut().chain(&mut step.answered) {
            names.replace(value, "", service);
        }
    }
    steps
}

/// A question as it was before [`normal`], by what these steps before it were answered.
pub fn asked_again(steps: &[Step], asked: Value) -> Value {
    let mut names = Names::default();
    steps.iter().for_each(|step| names.collect(step));
    names.restored(asked)
}

/// What fields mean depends on it.
#[derive(Clone, Copy, PartialEq)]
enum Service {
    Lease,
    Cluster,
    Maintenance,
    Other,
}

impl Service {
    fn of(call: &str) -> Self {
        let call = call.to_lowercase();
        match () {
            () if call.contains("lease/") => Self::Lease,
            () if call.contains("cluster/") => Self::Cluster,
            () if call.contains("maintenance/") => Self::Maintenance,
            () => Self::Other,
        }
    }
}

#[derive(Default)]
struct Names {
    revisions: BTreeSet<i64>,
    leases: Vec<String>,
}

fn positive(value: &Value) -> Option<i64> {
    value.as_str()?.parse().ok().filter(|number| *number > 0)
}

/// Whether an answer, or a part of it, says that something was written.
fn writes(call: &str, answer: &Value) -> bool {
    let put = call == "KV/Put" || call.ends_with("/kv/put");
    put || match answer {
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| matches!(name.as_str(), "response_put" | "deleted") || writes("", value))
        }
        Value::Array(each) => each.iter().any(|value| writes("", value)),
        _ => false,
    }
}

impl Names {
    fn collect(&mut self, step: &Step) {
        if let Some(answer) = &step.answered {
            let message = answer.get("body").unwrap_or(answer);
            if writes(&step.call, message) {
                self.revisions.extend(message.pointer("/header/revision").and_then(positive));
            }
            self.collect_revisions(message);
        }
        for value in step.asked.iter().chain(&step.answered) {
            self.collect_leases(value, Service::of(&step.call));
        }
    }

    fn collect_revisions(&mut self, value: &Value) {
        for (name, value) in children(value) {
            if matches!(name, "mod_revision" | "create_revision" | "rev") {
                self.revisions.extend(positive(value));
            }
            self.collect_revisions(value);
        }
    }

    fn collect_leases(&mut self, value: &Value, service: Service) {
        for (name, value) in children(value) {
            let lease = name == "lease" || name == "ID" && service == Service::Lease;
            match value.as_str().map(str::to_owned).or_else(|| value.as_i64().map(|id| id.to_string())) {
                Some(id) if lease && id != "0" && !self.leases.contains(&id) => self.leases.push(id),
                _ => self.collect_leases(value, service),
            }
        }
    }

    /// Undoes `replace` for leases and revisions.
    fn restored(&self, value: Value) -> Value {
        match value {
            Value::Object(fields) => {
                Value::Object(fields.into_iter().map(|(name, value)| (name, self.restored(value))).collect())
            }
            Value::Array(each) => Value::Array(each.into_iter().map(|value| self.restored(value)).collect()),
            Value::String(text) => Value::String(self.meant_by(&text).unwrap_or(text)),
            other => other,
        }
    }

    /// The number that a name stands for.
    fn meant_by(&self, name: &str) -> Option<String> {
        let place = |digits: &str| digits.parse::<usize>().ok()?.checked_sub(1);
        if let Some(digits) = name.strip_prefix('L') {
            return self.leases.get(place(digits)?).cloned();
        }
        let name = name.strip_prefix('r')?;
        let (digits, beyond) = name.split_once('+').unwrap_or((name, "0"));
        let revision = self.revisions.iter().nth(place(digits)?)?;
        Some((revision + beyond.parse::<i64>().ok()?).to_string())
    }

    fn replace(&self, value: &mut Value, name: &str, service: Service) {
        match value {
            Value::Object(fields) => {
                replace_error(fields);
                let granted = fields.get("grantedTTL").and_then(positive);
                for (field, value) in fields.iter_mut() {
                    match (field.as_str(), granted, positive(value)) {
                        ("TTL", Some(granted), Some(left)) if (granted - TTL_LOST_MAX..=granted).contains(&left) => {
                            *value = Value::from("what is left of it");
                        }
                        ("header", ..) => self.replace_header(value, service),
                        _ => self.replace(value, field, service),
                    }
                }
            }
            Value::Array(each) => {
                for value in each.iter_mut() {
                    self.replace(value, name, service);
                }
                if matches!(name, "leases" | "members") {
                    each.sort_by_key(Value::to_string);
                }
            }
            Value::String(text) => {
                if let Some(changed) = self.changed(text, name, service) {
                    *text = changed;
                }
            }
            Value::Number(number) if name == "hash" && number.is_u64() => *value = Value::from(ANY),
            // Only requests of the gateway have numbers there; an answer that had some would differ from text.
            Value::Number(number) => {
                if let Some(changed) = self.changed(&number.to_string(), name, service) {
                    *value = Value::from(format!("number {changed}"));
                }
            }
            _ => {}
        }
    }

    /// A header that has all there is to one is only its revision. etcd leaves that out where it answers about members.
    fn replace_header(&self, header: &mut Value, service: Service) {
        let revision = header.get("revision").and_then(positive);
        let place = revision.map(|number| format!("r{}", self.revisions.range(..=number).count()));
        let whole = ["cluster_id", "member_id", "raft_term"]
            .iter()
            .all(|name| header.get(name).and_then(Value::as_str).is_some());
        match place {
            _ if whole && service == Service::Cluster => *header = Value::from(ANY),
            Some(place) if whole => *header = Value::from(place),
            Some(place) => header["revision"] = Value::from(place),
            None => {}
        }
        for (_, value) in header.as_object_mut().into_iter().flatten() {
            if value.as_str().is_some_and(|text| text.parse::<u64>().is_ok()) {
                *value = Value::from(ANY);
            }
        }
    }

    fn changed(&self, text: &str, name: &str, service: Service) -> Option<String> {
        match (name, service) {
            ("memberID" | "targetID" | "authRevision", _) => self.any_number(text),
            ("token", _) if !text.is_empty() => Some(ANY.to_owned()),
            (name, _) if name == "rev" || name == "revision" || name.ends_with("_revision") => self.revision(text),
            ("lease", _) | ("ID", Service::Lease) => self.lease(text),
            ("ID", Service::Cluster) => self.any_number(text),
            ("name" | "peerURLs" | "clientURLs", Service::Cluster) if !text.contains("no such") => Some(ANY.to_owned()),
            (
                "leader" | "raftIndex" | "raftTerm" | "raftAppliedIndex" | "dbSize" | "dbSizeInUse" | "dbSizeQuota",
                _,
            ) if service == Service::Maintenance => self.any_number(text),
            ("version" | "storageVersion" | "etcdserver" | "etcdcluster" | "storage", _) => any_version(text),
            ("key" | "keys", _) => self.key(text),
            _ => None,
        }
    }

    fn any_number(&self, text: &str) -> Option<String> {
        text.parse::<i128>().ok().filter(|number| *number != 0).map(|_| ANY.to_owned())
    }

    fn revision(&self, text: &str) -> Option<String> {
        let number = text.parse::<i64>().ok().filter(|number| *number > 0)?;
        let place = self.revisions.range(..=number).count();
        let before = self.revisions.range(..=number).next_back().copied().unwrap_or(number);
        Some(match number - before {
            0 => format!("r{place}"),
            beyond if beyond > FAR => format!("r{place}+many"),
            beyond => format!("r{place}+{beyond}"),
        })
    }

    fn lease(&self, text: &str) -> Option<String> {
        self.leases.iter().position(|lease| lease == text).map(|place| format!("L{}", place + 1))
    }

    /// Keys of locks and elections end with their lease, in hexadecimal.
    fn key(&self, text: &str) -> Option<String> {
        let named = |text: &str| {
            let (prefix, id) = text.rsplit_once('/')?;
            let id = i64::from_str_radix(id, 16).ok()?;
            Some(format!("{prefix}/{}", self.lease(&id.to_string())?))
        };
        let decoded = || STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        named(text).or_else(|| Some(format!("base64 of {}", named(&decoded()?)?)))
    }
}

/// An error of the gateway. The one of etcd 3.5 has its text twice, and clients read either. Where a body cannot be read, there is no text that
/// clients could know: that of etcd even differs from build to build.
fn replace_error(fields: &mut Map<String, Value>) {
    if !fields.contains_key("code") || !fields.contains_key("message") {
        return;
    }
    if fields.get("error") == fields.get("message") {
        fields.remove("error");
    }
    let known = |text: &str| {
        ["etcdserver:", "mvcc:", "auth:", "Not Found", "Method Not"].iter().any(|start| text.starts_with(start))
    };
    if fields["code"] == 3 && fields["message"].as_str().is_some_and(|text| !known(text)) {
        fields["message"] = Value::from("what is wrong with the body");
    }
}

/// The fields of an object; those of a list have no name.
fn children(value: &Value) -> Box<dyn Iterator<Item = (&str, &Value)> + '_> {
    match value {
        Value::Object(fields) => Box::new(fields.iter().map(|(name, value)| (name.as_str(), value))),
        Value::Array(each) => Box::new(each.iter().map(|value| ("", value))),
        _ => Box::new(std::iter::empty()),
    }
}

/// Of a version, how many parts it has.
fn any_version(text: &str) -> Option<String> {
    let parts: Vec<_> = text.split('.').collect();
    let digits = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (parts.len() > 1 && parts.iter().all(digits)).then(|| vec![ANY; parts.len()].join("."))
}
