//! Defaults and judgement: arguments become a [`Config`], or a list of everything that is wrong with them.
//!
//! Owns every default and range. Opens nothing; the only files read are those of TLS and the keys of an archive and of backups.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use quorate_archive::Recipients;
use quorate_machine::level;
use quorate_node_core::gateway::admission::accounts::AccountLimits;
use quorate_node_core::gateway::door::AdminPort;
use quorate_node_core::gateway::hosts::{self, AllowedHosts};
use quorate_node_core::gateway::versions::EtcdVersion;
use quorate_node_core::{limits, unix_socket};
use quorate_node_replica::app::backup_schedule::BackupSchedule;
use quorate_node_replica::app::members::admission::JoinPolicy;
use tracing_subscriber::filter::Targets;

use super::faults::{DAY_MS, Faults, HUGE};
use super::tls::Security;
use super::{Args, Auth, ClientSocket, Config, ConfigError, DataDir, archive, jwt, shown};

/// Applies the defaults and checks every setting; reports all faults, not only the first.
pub fn resolve(args: Args) -> Result<Config, ConfigError> {
    let mut faults = Faults(Vec::new());
    let config = assemble(args, &mut faults);
    if faults.0.is_empty() { Ok(config) } else { Err(ConfigError::Faults(faults.0)) }
}

/// Where a node with `--dev` serves clients: where clients that are told nothing look first, as for node 1 of a cluster on this
/// machine.
pub const DEV_CLIENT_LISTEN: &str = "127.0.0.1:7101";

/// What is to be logged, of settings of which nothing else is looked at.
pub fn log_filter_alone(args: Args) -> Result<Targets, ConfigError> {
    let mut faults = Faults(Vec::new());
    let filter = log_filter(args.log, &mut faults);
    if faults.0.is_empty() { Ok(filter) } else { Err(ConfigError::Faults(faults.0)) }
}

fn assemble(mut args: Args, faults: &mut Faults) -> Config {
    // A number, its default and its range.
    macro_rules! number {
        ($kind:ident $field:ident or $default:expr, $lowest:expr => $highest:expr) => {
            faults.$kind(stringify!($field), args.$field.unwrap_or($default), $lowest, $highest)
        };
    }
    let given = shown::settings(&args);
    let dev = args.dev.unwrap_or(false);
    let insecure = args.insecure.unwrap_or(false);
    let node_id = node_id(args.node_id, dev, faults);
    let (clients_at, peers_at) = match dev {
        true => (DEV_CLIENT_LISTEN, "127.0.0.1:7201"),
        false => ("127.0.0.1:7100", "127.0.0.1:7200"),
    };
    let client_listen = listen("client_listen", args.client_listen.as_deref(), clients_at, faults);
    let peer_listen = listen("peer_listen", args.peer_listen.as_deref(), peers_at, faults);
    let spare_node_ids = spare_node_ids(args.spare_node_ids.take(), faults);
    let security = Security::of(&mut args, node_id, &spare_node_ids, faults);
    let jwt = jwt::of(&mut args, security.auth, faults);
    let admin = admin_port(&mut args, faults);
    if !insecure {
        security.judge_listeners(client_listen, admin.map(|admin| admin.address), peer_listen, faults);
    }
    let archive = archive::settings(&mut args, faults);
    let backups = backups(&mut args, faults);
    let client_advertise = advertise("client_advertise", args.client_advertise, client_listen, faults);
    let standby = args.standby.unwrap_or(false);
    let worker_threads = args.worker_threads.unwrap_or((cores() / 2).max(1));
    let client_threads = args.client_threads.unwrap_or(cores().saturating_sub(worker_threads));
    let (join, peer_advertise) = membership(&args.join, args.peer_advertise, node_id, peer_listen, dev, faults);
    judge_spare_ids(&spare_node_ids, node_id, &join, faults);
    let own = [&client_advertise, &peer_advertise];
    let hosts = allowed_hosts(args.allowed_hosts.as_deref(), security.auth, own, faults);
    if standby && join.contains_key(&node_id) {
        let detail = format!(
            "--join names the founding members, and a standby is none of them; take node {node_id} out of it and say --peer-advertise"
        );
        faults.add("standby", detail);
    }
    let (heartbeat, election_min, election_max) =
        timing(args.heartbeat_ms, args.election_min_ms, args.election_max_ms, faults);
    let (request_timeout, request_timeout_max) =
        request_timeouts(args.request_timeout_ms, args.request_timeout_max_ms, faults);
    let connections_max = number!(size connections_max or 4_096, 1 => 1_000_000);
    Config {
        node_id,
        spare_node_ids,
        is_spare: false,
        data_dir: data_dir(args.data_dir, dev, faults),
        client_listen,
        client_socket: client_socket(args.client_socket, args.client_socket_mode.as_deref(), faults),
        peer_listen,
        client_advertise,
        peer_advertise,
        join,
        standby,
        join_token_file: args.join_token_file,
        join_policy: args.join_policy.unwrap_or(match security.peer_tls {
            Some(_) => JoinPolicy::Token,
            None => JoinPolicy::Open,
        }),
        replace_dead_after: replace_dead_after(args.replace_dead_after_ms, faults),
        given,
        log_filter: log_filter(args.log, faults),
        log_format: args.log_format.unwrap_or_default(),
        slow_request: number!(millis slow_request_ms or 500, 0 => DAY_MS),
        otlp_endpoint: args.otlp_endpoint.and_then(|endpoint| collector(&endpoint, faults)),
        trace_percent: faults.size("trace_percent", args.trace_percent.unwrap_or(1) as usize, 0, 100) as u32,
        trace_parents: args.trace_parents.unwrap_or_default(),
        feature_level_max: args
            .feature_level_max
            .map_or(level::newest(), |max| max.clamp(level::FIRST, level::newest())),
        heartbeat,
        election_min,
        election_max,
        snapshot_every_entries: number!(within snapshot_every_entries or 100_000, 1 => HUGE),
        keep_log_entries: number!(within keep_log_entries or 20_000, 0 => HUGE),
        history_keep: number!(millis history_keep_ms or 900_000, 0 => 365 * DAY_MS),
        history_keep_revisions: number!(within history_keep_revisions or 100_000, 1 => HUGE),
        history_bytes_max: number!(within history_bytes_max or 4 << 30, 0 => HUGE),
        log_bytes_max: number!(within log_bytes_max or 1 << 30, 64 << 20 => HUGE),
        quota_bytes: number!(within quota_bytes or 8 << 30, 0 => HUGE),
        request_timeout,
        request_timeout_max,
        body_bytes_max: number!(
            size body_bytes_max or limits::BODY_BYTES_MAX_DEFAULT, 1_024 => limits::BODY_BYTES_MAX_CEILING
        ),
        connections_max,
        accounts: AccountLimits {
            ops_per_second: number!(within account_ops_per_second or 0, 0 => HUGE),
            bytes_per_second: number!(within account_bytes_per_second or 0, 0 => HUGE),
            connections_max: number!(size account_connections_max or connections_max.div_ceil(4), 0 => 1_000_000),
            watches_max: number!(size account_watches_max or 0, 0 => 1_000_000),
        },
        header_timeout: number!(millis header_timeout_ms or 5_000, 100 => DAY_MS),
        body_timeout: number!(millis body_timeout_ms or 10_000, 100 => DAY_MS),
        body_rate_min: number!(within body_rate_min or limits::BODY_RATE_MIN_DEFAULT, 1 => HUGE),
        idle_timeout: number!(millis idle_timeout_ms or 60_000, 100 => DAY_MS),
        drain_timeout: number!(millis drain_timeout_ms or 5_000, 0 => DAY_MS),
        worker_threads: faults.size("worker_threads", worker_threads, 1, 1_024),
        client_threads: faults.size("client_threads", client_threads, 0, 1_024),
        busy_poll: Duration::from_micros(number!(within busy_poll_us or 600, 0 => 100_000)),
        ballast_bytes: number!(within ballast_bytes or if dev { 0 } else { 64 << 20 }, 0 => HUGE),
        min_free_bytes: number!(within min_free_bytes or if dev { 0 } else { 256 << 20 }, 0 => HUGE),
        archive,
        backups,
        console: !args.no_console.unwrap_or(false),
        cors_origins: cors_origins(args.cors_origins.as_deref().unwrap_or_default(), faults),
        hosts,
        etcd_version: args.etcd_version.map_or_else(EtcdVersion::default, |text| etcd_version(&text, faults)),
        tls: security.tls,
        peer_tls: security.peer_tls,
        auth: security.auth,
        root_token_file: security.root_token_file,
        admin,
        jwt,
        audit_log: args.audit_log,
        dev,
        insecure,
    }
}

/// The whole address of a collector; where it names no path, the usual one.
fn collector(endpoint: &str, faults: &mut Faults) -> Option<String> {
    let address = endpoint.strip_prefix("http://").map(|rest| rest.split_once('/').unwrap_or((rest, "")));
    let Some((authority, path)) = address else {
        let why = "does not begin with http://; a collector beyond TLS is reached through one on this machine";
        faults.add("otlp_endpoint", format!("`{endpoint}` {why}"));
        return None;
    };
    if let Err(why) = reachable(authority) {
        faults.add("otlp_endpoint", format!("`{endpoint}` {why}; write it like http://127.0.0.1:4318"));
        return None;
    }
    let path = if path.is_empty() { "v1/traces" } else { path };
    Some(format!("http://{authority}/{path}"))
}

fn etcd_version(text: &str, faults: &mut Faults) -> EtcdVersion {
    EtcdVersion::new(text).unwrap_or_else(|| {
        faults.add("etcd_version", format!("`{text}` is not three numbers with dots between them, like 3.6.5"));
        EtcdVersion::default()
    })
}

/// Origins as browsers send them, or the star.
fn cors_origins(list: &str, faults: &mut Faults) -> Vec<String> {
    let origins: Vec<_> =
        list.split(',').map(str::trim).filter(|origin| !origin.is_empty()).map(str::to_owned).collect();
    for origin in origins.iter().filter(|origin| *origin != "*" && !is_origin(origin)) {
        let how = "write it as a browser does: scheme, host in lower case, and the port where it is not the usual one";
        faults.add(
            "cors_origins",
            format!("`{origin}` is no origin; {how}, like https://app.example.org or http://localhost:3000"),
        );
    }
    origins
}

fn is_origin(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-:[]".contains(&byte);
    matches!(scheme, "http" | "https") && !rest.is_empty() && rest.bytes().all(is_plain)
}

/// The names by which this node may be asked: any where everybody has to say who they are and nothing else is configured.
fn allowed_hosts(list: Option<&str>, auth: Auth, own: [&String; 2], faults: &mut Faults) -> AllowedHosts {
    if list.is_none() && auth == Auth::Required {
        return AllowedHosts::ALL;
    }
    let names = list.unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty());
    let names: Vec<_> = names.map(str::to_owned).collect();
    for name in names.iter().filter(|name| *name != "*" && !is_host_name(name)) {
        let how = "write names without scheme and port, like quorate.example.org or *.example.org";
        faults.add("allowed_hosts", format!("`{name}` is no name of a host; {how}"));
    }
    AllowedHosts::of(names.into_iter().chain(own.into_iter().map(|address| hosts::host_of(address).to_owned())))
}

fn is_host_name(name: &str) -> bool {
    let name = name.strip_prefix("*.").unwrap_or(name);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    name.bytes().all(is_plain) && !name.starts_with('.')
}

fn backups(args: &mut Args, faults: &mut Faults) -> Option<BackupSchedule> {
    let (every_ms, keep) = (args.backup_every_ms.unwrap_or(DAY_MS), args.backup_keep.unwrap_or(7));
    let every = faults.millis("backup_every_ms", every_ms, 1_000, 365 * DAY_MS);
    let keep = faults.size("backup_keep", keep, 1, 1_000_000);
    let Some(dir) = args.backup_dir.take() else {
        for field in args.given("backup_") {
            faults.add(field, "there are no backups without a directory; say --backup-dir DIR too");
        }
        return None;
    };
    if dir.as_os_str().is_empty() {
        faults.add("backup_dir", "empty; name a directory, or leave it out for no backups");
    }
    let list = args.backup_recipients.take();
    let recipients = archive::recipients("backup_recipients", list, Recipients::default, faults)?;
    let macs = archive::mac_keys("backup_mac_key", args.backup_mac_key.take(), faults)?;
    Some(BackupSchedule { dir, every, keep, recipients, macs })
}

fn node_id(given: Option<u64>, dev: bool, faults: &mut Faults) -> u64 {
    match given {
        Some(0) => faults.add("node_id", "0 is not a node id; give each node its own number from 1"),
        Some(id) => return id,
        None if dev => {}
        None => faults.add("node_id", "missing; say --node-id N, a number from 1 that no other node has"),
    }
    1
}

fn spare_node_ids(given: Option<String>, faults: &mut Faults) -> Vec<u64> {
    let given = given.unwrap_or_default();
    let mut ids = Vec::new();
    for item in given.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        match item.parse::<u64>() {
            Ok(id) if id >= 1 && !ids.contains(&id) => ids.push(id),
            Ok(id) if id >= 1 => faults.add("spare_node_ids", format!("node id {id} is listed twice")),
            _ => faults.add("spare_node_ids", format!("`{item}` is not a node id from 1; write them like 103,203")),
        }
    }
    ids
}

/// A spare id is for this place alone, and founds nothing.
fn judge_spare_ids(spare: &[u64], node_id: u64, join: &BTreeMap<u64, String>, faults: &mut Faults) {
    for id in spare {
        if *id == node_id || join.contains_key(id) {
            let why = "is the id of a node already; a spare one belongs to no other place, and is not in --join";
            faults.add("spare_node_ids", format!("{id} {why}"));
        }
    }
}

fn data_dir(given: Option<std::path::PathBuf>, dev: bool, faults: &mut Faults) -> DataDir {
    match given {
        Some(_) if dev => faults.add("data_dir", "--dev keeps nothing; leave out either --dev or --data-dir"),
        Some(path) if path.as_os_str().is_empty() => faults.add("data_dir", "empty; name a directory"),
        Some(path) => return DataDir::Given(path),
        None if dev => {}
        None => faults.add("data_dir", "missing; say --data-dir DIR, or --dev for a node that keeps nothing"),
    }
    DataDir::Temporary
}

fn listen(field: &'static str, given: Option<&str>, default: &str, faults: &mut Faults) -> SocketAddr {
    let fallback = default.parse().expect("the default is an address");
    let Some(text) = given else { return fallback };
    text.parse().unwrap_or_else(|_| {
        faults.add(field, format!("`{text}` is not IP:PORT; write it like {default}"));
        fallback
    })
}

fn admin_port(args: &mut Args, faults: &mut Faults) -> Option<AdminPort> {
    let (is_only, has_open_metrics) = (args.admin_only.unwrap_or(false), args.admin_open_metrics.unwrap_or(false));
    let Some(text) = args.admin_listen.take() else {
        for (field, _) in
            [("admin_only", is_only), ("admin_open_metrics", has_open_metrics)].iter().filter(|(_, is)| *is)
        {
            faults.add(field, "there is no port for administration: say --admin-listen ADDR, or leave it out");
        }
        return None;
    };
    let address = listen("admin_listen", Some(&text), "127.0.0.1:7300", faults);
    Some(AdminPort { address, is_only, has_open_metrics })
}

fn client_socket(path: Option<PathBuf>, mode: Option<&str>, faults: &mut Faults) -> Option<ClientSocket> {
    if mode.is_some() && path.is_none() {
        faults.add("client_socket_mode", "needs --client-socket PATH");
    }
    let path = path?;
    if !(1..=unix_socket::PATH_BYTES_MAX).contains(&path.as_os_str().as_bytes().len()) {
        let detail = format!("a path of 1 to {} bytes is what a socket can have", unix_socket::PATH_BYTES_MAX);
        faults.add("client_socket", detail);
    }
    let mode = mode.unwrap_or("660");
    let bits = u32::from_str_radix(mode, 8).ok().filter(|bits| *bits <= 0o777 && !mode.starts_with('+'));
    if bits.is_none() {
        faults.add("client_socket_mode", format!("`{mode}` is no file mode; write it in octal, like 660"));
    }
    Some(ClientSocket { path, mode: bits.unwrap_or(0o600) })
}

fn advertise(field: &'static str, given: Option<String>, listen: SocketAddr, faults: &mut Faults) -> String {
    let address = given.unwrap_or_else(|| listen.to_string());
    if let Err(why) = reachable(&address) {
        faults.add(field, format!("`{address}` {why}; give the HOST:PORT under which others reach this node"));
    }
    address
}

/// Whether others could connect to this `host:port`.
fn reachable(address: &str) -> Result<(), String> {
    let (host, port) = address.rsplit_once(':').ok_or("has no port")?;
    match port.parse::<u16>() {
        Ok(0) => return Err("has port 0".into()),
        Ok(_) => {}
        Err(_) => return Err("has a port that is no number from 1 to 65535".into()),
    }
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if bare.is_empty() || bare.contains(|c: char| c.is_whitespace() || c.is_control() || c == '/' || c == '@') {
        return Err("has no usable host".into());
    }
    match bare.parse::<IpAddr>() {
        Ok(ip) if ip.is_unspecified() => Err("is a wildcard that nobody can connect to".into()),
        Ok(IpAddr::V6(_)) if !host.starts_with('[') => Err("needs brackets around its IPv6 address".into()),
        _ => Ok(()),
    }
}

fn membership(
    join: &Option<String>,
    peer_advertise: Option<String>,
    node_id: u64,
    peer_listen: SocketAddr,
    dev: bool,
    faults: &mut Faults,
) -> (BTreeMap<u64, String>, String) {
    let Some(text) = join else {
        if !dev {
            faults.add("join", "missing; say --join 1=HOST:PORT,2=HOST:PORT,... with the same list on all nodes");
        }
        let own = advertise("peer_advertise", peer_advertise, peer_listen, faults);
        return (BTreeMap::from([(node_id, own.clone())]), own);
    };
    if dev {
        faults.add("join", "--dev is a cluster of its own; leave out either --dev or --join");
    }
    let members = members(text, faults);
    let own = members.get(&node_id);
    match (own, &peer_advertise) {
        (None, None) => faults.add(
            "join",
            format!(
                "does not contain this node; add {node_id}=HOST:PORT, the same on all nodes, or say --peer-advertise if it is \
                 to join a cluster that is there"
            ),
        ),
        (Some(listed), Some(said)) if listed != said => faults.add(
            "peer_advertise",
            format!("`{said}` differs from this node's address in --join, `{listed}`; leave one of them out or make them equal"),
        ),
        _ => {}
    }
    let own = peer_advertise.or_else(|| own.cloned());
    let own = advertise("peer_advertise", own, peer_listen, faults);
    (members, own)
}

/// Shorter than a restart takes would replace nodes that come back.
const REPLACE_AFTER_MS_MIN: u64 = 3_000;

fn replace_dead_after(given: Option<u64>, faults: &mut Faults) -> Option<Duration> {
    match given {
        None | Some(0) => None,
        Some(wanted) => Some(faults.millis("replace_dead_after_ms", wanted, REPLACE_AFTER_MS_MIN, 365 * DAY_MS)),
    }
}

fn members(text: &str, faults: &mut Faults) -> BTreeMap<u64, String> {
    let mut members = BTreeMap::new();
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        match member(item, &members) {
            Ok((id, address)) => match members.entry(id) {
                Entry::Occupied(_) => faults.add("join", format!("node {id} is listed twice; list each node once")),
                Entry::Vacant(slot) => {
                    slot.insert(address);
                }
            },
            Err(detail) => faults.add("join", detail),
        }
    }
    members
}

fn member(item: &str, known: &BTreeMap<u64, String>) -> Result<(u64, String), String> {
    let form = "write each member as ID=HOST:PORT";
    let (id, address) = item.split_once('=').ok_or_else(|| format!("`{item}` has no `=`; {form}"))?;
    let id = match id.trim().parse::<u64>() {
        Ok(id) if id >= 1 => id,
        _ => return Err(format!("`{}` is not a node id from 1; {form}", id.trim())),
    };
    let address = address.trim();
    reachable(address).map_err(|why| format!("the address `{address}` of node {id} {why}; {form}"))?;
    if let Some((other, _)) = known.iter().find(|(other, taken)| **other != id && taken.as_str() == address) {
        return Err(format!("nodes {other} and {id} have the same address {address}; give each its own"));
    }
    Ok((id, address.to_owned()))
}

fn timing(
    heartbeat: Option<u64>,
    election_min: Option<u64>,
    election_max: Option<u64>,
    faults: &mut Faults,
) -> (Duration, Duration, Duration) {
    let heartbeat = faults.within("heartbeat_ms", heartbeat.unwrap_or(40), 5, 60_000);
    let shortest = faults.within("election_min_ms", election_min.unwrap_or(280), 15, 600_000);
    let longest = faults.within("election_max_ms", election_max.unwrap_or(400), 16, 600_000);
    if shortest < 3 * heartbeat {
        let need = 3 * heartbeat;
        faults.add(
            "election_min_ms",
            format!(
                "{shortest} is less than three heartbeats of {heartbeat} ms; give at least {need} or lower heartbeat_ms"
            ),
        );
    }
    if longest <= shortest {
        faults.add("election_max_ms", format!("{longest} is not more than election_min_ms, {shortest}; raise it"));
    }
    (Duration::from_millis(heartbeat), Duration::from_millis(shortest), Duration::from_millis(longest))
}

fn request_timeouts(usual: Option<u64>, longest: Option<u64>, faults: &mut Faults) -> (Duration, Duration) {
    let longest = faults.within("request_timeout_max_ms", longest.unwrap_or(60_000), 1, DAY_MS);
    let usual = faults.within("request_timeout_ms", usual.unwrap_or(10_000.min(longest)), 1, DAY_MS);
    if usual > longest {
        faults.add(
            "request_timeout_ms",
            format!("{usual} is more than request_timeout_max_ms, {longest}; lower it or raise the maximum"),
        );
    }
    (Duration::from_millis(usual), Duration::from_millis(longest))
}

/// What openraft tells at the level info is for whoever works on Raft: most lines of a node, of up to 3,000 characters each. Quorate tells
/// of leaders and members itself. Beyond that openraft warns of each heartbeat that a silent node does not answer, and each round of reads
/// is one: thousands of lines a second while a node is down. Replication says the same at its own, slower pace.
const LOG_DEFAULT: &str = "info,openraft=warn,openraft::core::heartbeat=error";

fn log_filter(given: Option<String>, faults: &mut Faults) -> Targets {
    let filter = given.unwrap_or_else(|| LOG_DEFAULT.into());
    filter.parse().unwrap_or_else(|error| {
        faults
            .add("log", format!("`{filter}` is not a filter ({error}); write it like info or quorate_node=debug,info"));
        Targets::new()
    })
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
