//! `quorate support-bundle`: what somebody who is to help asks for, in one file.
//!
//! Owns what is in it. No key and no value of an entry, no name of a lock, session or user, no secret: what a node tells is without them
//! already, and nothing else is asked for.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;
use quorate_client::{Error, MemberStatus, NodeClient};
use serde::Serialize;
use serde_json::json;

use crate::fail::Failed;
use crate::{Context, output, said};

/// Lines of the log of each node.
const LINES: usize = 10_000;

const README: &str = "\
What a Quorate cluster told of itself for somebody who is to help.

bundle.json            when and by which version of `quorate` this was made, whom it asked, and what could not be had
cluster/status.json    every member as it sees itself and the cluster, with its warnings
cluster/members.json   the members as the leader knows them
cluster/warnings.txt   all warnings
cluster/rules.json     the collections with their rules and the state of their indexes; defaults are left out
nodes/N/metrics.txt    all metrics of node N (OpenMetrics)
nodes/N/config.json    its settings; of files of secrets the path alone
nodes/N/log.json       what it logs, and its last lines; names and values of entries are left out of them

In none of this is a key or a value of an entry, a name of a lock, a session or a user, a token, a password or a private key. Addresses of
nodes and paths on their disks are. Look before you send it: tar -xzOf FILE | less
";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The file is a tar.gz for who may administer everything to make. It has versions, status, members, warnings, metrics, settings without \
secrets and the last lines of the logs; no keys and no values. A node that does not answer is left out, and bundle.json says so.

Examples:
  quorate support-bundle
  quorate support-bundle /tmp/shop.tar.gz && tar -tzf /tmp/shop.tar.gz")]
pub struct Args {
    /// The file; it must not be there yet [default: quorate-support-UNIXTIME.tar.gz]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// The archive while it is made.
struct Bundle {
    archive: tar::Builder<GzEncoder<std::fs::File>>,
    made: u64,
    /// What could not be had.
    missing: Vec<String>,
}

impl Bundle {
    fn begin(path: &Path, made: u64) -> std::io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        Ok(Self { archive: tar::Builder::new(GzEncoder::new(file, Compression::default())), made, missing: Vec::new() })
    }

    fn add(&mut self, name: &str, text: &[u8]) -> std::io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(self.made);
        self.archive.append_data(&mut header, format!("quorate-support/{name}"), text)
    }

    fn add_json(&mut self, name: &str, value: &impl Serialize) -> std::io::Result<()> {
        let mut text = serde_json::to_vec_pretty(value).map_err(std::io::Error::other)?;
        text.push(b'\n');
        self.add(name, &text)
    }

    /// Adds what was asked for, or notes that it could not be had.
    fn add_asked<T: Serialize>(&mut self, name: &str, asked: Result<T, Error>) -> std::io::Result<()> {
        match asked {
            Ok(value) => self.add_json(name, &value),
            Err(error) => {
                self.missing.push(format!("{name}: {error}"));
                Ok(())
            }
        }
    }

    fn end(self) -> std::io::Result<()> {
        let mut file = self.archive.into_inner()?.finish()?;
        file.flush()?;
        file.sync_all()
    }
}

pub async fn run(context: &Context, args: Args) -> Result<(), Failed> {
    let made = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let path = args.file.unwrap_or_else(|| format!("quorate-support-{made}.tar.gz").into());
    let members = context.client.overview().await?;
    if members.iter().all(|member| member.status.is_err()) {
        return Err(Failed::other("no node answers: look at their logs on their machines"));
    }
    let unwritten = |error: std::io::Error| Failed::other(format!("cannot write {}: {error}", path.display()));
    let mut bundle = Bundle::begin(&path, made).map_err(unwritten)?;
    let filled = fill(context, &mut bundle, &members).await;
    let missing = bundle.missing.clone();
    let done = filled.and_then(|()| bundle.end().map_err(Failed::from_io));
    if let Err(failed) = done {
        // Half of one is of no use, and would stand in the way of the next.
        let _gone = std::fs::remove_file(&path);
        return Err(failed);
    }
    match context.shared.output.data() {
        Some(form) => output::show(form, &json!({"file": path.display().to_string(), "missing": missing}))?,
        None => {
            output::line(format!("{}: {} nodes; look at it before you send it", path.display(), members.len()))?;
            missing.iter().try_for_each(|what| output::line(format!("not in it: {what}")))?;
        }
    }
    Ok(())
}

async fn fill(context: &Context, bundle: &mut Bundle, members: &[MemberStatus]) -> Result<(), Failed> {
    let bar = said::bar(Some(members.len() as u64 + 1), "asking [{bar:20}] {pos}/{len} {msg}");
    let of_disk = Failed::from_io;
    bar.set_message("cluster");
    bundle.add("README", README.as_bytes()).map_err(of_disk)?;
    let views: Vec<_> = members.iter().map(crate::status::view).collect();
    bundle.add_json("cluster/status.json", &views).map_err(of_disk)?;
    bundle.add("cluster/warnings.txt", crate::status::worries_of(members).as_bytes()).map_err(of_disk)?;
    bundle.add_asked("cluster/members.json", context.client.members().list().await).map_err(of_disk)?;
    bundle.add_asked("cluster/rules.json", rules(context).await).map_err(of_disk)?;
    bar.inc(1);
    for (at, member) in members.iter().enumerate() {
        let name = member.node_id.map_or_else(|| format!("unknown-{at}"), |id| id.to_string());
        bar.set_message(format!("node {name}"));
        match &member.status {
            Err(error) => bundle.missing.push(format!("nodes/{name}: {error}")),
            Ok(_) => add_node(bundle, &format!("nodes/{name}"), &context.client.node(&member.address)?).await?,
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let asked: Vec<_> =
        members.iter().map(|member| json!({"node_id": member.node_id, "address": member.address})).collect();
    let about = json!({
        "made_unix_seconds": bundle.made, "quorate": env!("CARGO_PKG_VERSION"), "asked": asked, "missing": bundle.missing,
    });
    bundle.add_json("bundle.json", &about).map_err(of_disk)
}

/// The collections without what stands in entries: the values that fields take by themselves, and the keys that an index failed over.
async fn rules(context: &Context) -> Result<serde_json::Value, Error> {
    let list = context.client.collections().await?;
    let mut value = serde_json::to_value(&list).unwrap_or_default();
    leave_out_values(&mut value);
    Ok(value)
}

fn leave_out_values(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::Object(fields) => {
            for name in ["default", "detail"] {
                // A rule of a field with such a name is an object.
                if let Some(left_out) = fields.get_mut(name).filter(|inside| !inside.is_object() || name == "default") {
                    *left_out = "(left out)".into();
                }
            }
            fields.values_mut().for_each(leave_out_values);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_values),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

async fn add_node(bundle: &mut Bundle, place: &str, node: &NodeClient) -> Result<(), Failed> {
    match node.metrics().await {
        Ok(text) => bundle.add(&format!("{place}/metrics.txt"), text.as_bytes()).map_err(Failed::from_io)?,
        Err(error) => bundle.missing.push(format!("{place}/metrics.txt: {error}")),
    }
    bundle.add_asked(&format!("{place}/config.json"), node.config().await).map_err(Failed::from_io)?;
    let log = match (node.log().await, node.log_lines(LINES).await) {
        (Ok(log), Ok(lines)) => Ok(json!({"filter": log.filter, "configured": log.configured, "lines": lines.lines})),
        (Err(error), _) | (_, Err(error)) => Err(error),
    };
    bundle.add_asked(&format!("{place}/log.json"), log).map_err(Failed::from_io)
}
