//! From an empty disk to a member: one idempotent join list, the same on every node.
//!
//! Owns the decision between founding a cluster, joining one and being refused. Never founds a second cluster: only the
//! lowest node of the list founds, only when every node of the list answered, and only when none of them has one already.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use openraft::errors::{InitializeError, RaftError};
use parking_lot::Mutex;
use quorate_node_core::file_mode::refuse_open_secret;
use quorate_store::raft::wire::{MemberRecord, MembershipRecord};
use quorate_store::raft::{Member, Membership, NodeId};
use quorate_threads::background;

use super::App;
use super::join_list::JoinList;
use super::members::unsettled::is_unsettled;
use super::peers::QueryError;
use super::service::Service;
use crate::peer::CallError;
use crate::peer::handshake::Refusal;
use crate::peer::message::{HelloAnswer, Invitation, PeerRequest, PeerResponse};

/// Between two rounds of questions.
const ROUND: Duration = Duration::from_millis(100);
/// Between two rounds of questions to nodes of the list that never joined.
const STRANGERS_ROUND: Duration = Duration::from_secs(1);
/// Pause of a learner whose vote has to wait, before it asks again.
const ASK_AGAIN: Duration = Duration::from_secs(2);
/// For one question.
const ASK: Duration = Duration::from_millis(1_000);
/// For an answer to a join, which includes catching up.
const JOIN: Duration = Duration::from_secs(70);

/// Why this node is no member and becomes none.
#[derive(Debug, thiserror::Error)]
pub enum NoMember {
    /// Somebody refuses it, or its settings do: the process ends.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It was taken in, and removed again before it knew of either.
    #[error("this node was removed from its cluster")]
    Removed,
}

/// What this node comes with when it asks to be taken in.
#[derive(Debug, Default)]
pub struct JoinCredential {
    /// It is to stay a learner.
    pub as_standby: bool,
    /// File with its invitation, read for each try; it may be missing.
    pub invitation_file: Option<PathBuf>,
    /// It has other ids, under which it may ask instead of waiting where this one was removed.
    pub has_spare_ids: bool,
    /// What was said last of why it is not taken in.
    pub said: Mutex<String>,
}

/// What the file of an invitation has in it.
#[derive(Debug)]
enum Shown {
    /// It is missing, or empty.
    Nothing,
    /// An invitation.
    Invitation(Invitation),
    /// Others may read it, and this is said of it.
    Open(String),
}

impl JoinCredential {
    /// The invitation, if there is one by now.
    async fn invitation(&self) -> Result<Shown, Refusal> {
        let Some(path) = self.invitation_file.clone() else { return Ok(Shown::Nothing) };
        let shown = path.display().to_string();
        let read = background::blocking(move || (std::fs::read_to_string(&path), refuse_open_secret(&path))).await;
        match read.map_err(|error| Refusal::from(error.to_string()))? {
            // There is nothing yet that somebody could have read.
            (Ok(text), _) if text.trim().is_empty() => Ok(Shown::Nothing),
            (Ok(_), Err(why)) => Ok(Shown::Open(format!("join_token_file: {shown} {why}"))),
            (Ok(text), Ok(())) => Ok(Shown::Invitation(Invitation(text.trim().to_owned()))),
            (Err(error), _) if error.kind() == ErrorKind::NotFound => Ok(Shown::Nothing),
            (Err(error), _) => Err(Refusal::from(format!("join_token_file: {shown} cannot be read: {error}"))),
        }
    }

    /// Says why this node is not taken in, once for each reason.
    fn say(&self, reason: &str) {
        let mut said = self.said.lock();
        if *said != reason {
            tracing::warn!(reason, "this node is not taken in; it asks again");
            reason.clone_into(&mut said);
        }
    }
}

/// Makes this node a member: a voter, or a learner where it is a standby. Returns once it is one; on a disk that has a
/// membership already, once no node of the list can be of another cluster.
pub async fn become_member(
    app: &App,
    service: &Arc<Service>,
    list: &JoinList,
    credential: &JoinCredential,
) -> Result<(), NoMember> {
    let as_standby = credential.as_standby;
    let mut said = String::new();
    loop {
        let membership = super::service::membership(app);
        if membership.as_ref().is_some_and(|membership| is_in(membership, app.node_id(), as_standby)) {
            return Ok(refuse_other_cluster(app, service, list).await?);
        }
        let hellos = ask_all(app, service, list).await?;
        let was_member = membership.is_some() && !is_unsettled(app.node_id(), app.raft());
        let step = decide(app.node_id(), &service.identity.load(), list, was_member, &hellos)?;
        let now = format!("{step}");
        if now != said {
            tracing::info!("{now}");
            said = now;
        }
        match step {
            Step::Wait { .. } => {}
            Step::Found { cluster_id, others, .. } => found(app, service, list, cluster_id, others).await?,
            Step::Join { cluster_id, through } => join(app, service, cluster_id, &through, credential).await?,
            Step::Listed { cluster_id } | Step::Unlisted { cluster_id } => record(service, cluster_id).await?,
        }
        tokio::time::sleep(ROUND).await;
    }
}

/// Whether a node is what it is to be. A learner that is no standby has not finished joining.
fn is_in(membership: &MembershipRecord, id: NodeId, as_standby: bool) -> bool {
    votes(membership, id) || as_standby && membership.nodes.contains_key(&id)
}

fn votes(membership: &MembershipRecord, id: NodeId) -> bool {
    membership.configs.iter().any(|voters| voters.contains(&id))
}

/// Whether a disk may be another cluster's: it has a membership, which knows no other node of the list, although the list
/// has some. Nothing is answered from it until one of them has answered (none of another cluster does, see the
/// handshake), or it turns out to be part of a quorum with other nodes. A disk that knows one of them needs no such proof: it
/// may be the lone survivor of its cluster.
pub fn is_doubtful(self_id: NodeId, membership: &Membership, list: &JoinList) -> bool {
    let others = || list.keys().filter(|id| **id != self_id);
    let is_member = membership.nodes().next().is_some();
    is_member && others().next().is_some() && !others().any(|id| is_known(id, membership, list))
}

/// Whether a membership has a node of the list, or one that came in its place.
fn is_known(id: &NodeId, membership: &Membership, list: &JoinList) -> bool {
    let is_there = |(_, member): (&NodeId, &Member)| Some(&member.peer_addr) == list.get(id);
    membership.get_node(id).is_some() || membership.nodes().any(is_there)
}

/// Whether a leader is heard in a group that this node is not alone in.
fn is_part_of_a_quorum(app: &App) -> bool {
    let membership = super::service::membership(app);
    let is_alone = membership.is_none_or(|membership| membership.configs.iter().all(|voters| voters.len() == 1));
    !is_alone && app.members().view().hears_leader()
}

/// Refuses to serve on a disk of another cluster than the list's. Such a disk may hold a majority of its own (that of a
/// single node does): it would lead itself and answer with foreign data. So every node of the list that the own membership
/// does not know is asked until it has answered; mostly there is none. A disk that knows other members decides nothing without
/// them, so it need not end where a list that has grown old names somebody else.
async fn refuse_other_cluster(app: &App, service: &Service, list: &JoinList) -> Result<(), Refusal> {
    let known = super::service::membership(app).map(|membership| membership.nodes).unwrap_or_default();
    let mut strangers: JoinList =
        list.iter().filter(|(id, _)| !known.contains_key(id)).map(|(id, addr)| (*id, addr.clone())).collect();
    strangers.retain(|id, addr| is_elsewhere(service, *id, addr));
    loop {
        match ask_all(app, service, &strangers).await {
            Ok(hellos) => strangers.retain(|id, _| !hellos.contains_key(id)),
            Err(Refusal { reason, .. }) if known.len() > 1 => {
                tracing::warn!(reason, "the join list has a node that is none of this cluster; is it up to date?");
            }
            Err(refused) => return Err(refused),
        }
        if is_part_of_a_quorum(app) {
            app.reads().trust_disk();
        }
        if strangers.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(STRANGERS_ROUND).await;
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// Nothing yet; these nodes are silent, or the founder has not acted.
    Wait { silent: Vec<NodeId>, founder: NodeId },
    /// Found the cluster with this node and these others.
    Found { founder: NodeId, cluster_id: Option<u128>, others: BTreeMap<NodeId, MemberRecord> },
    /// Ask an existing cluster to take this node in.
    Join { cluster_id: u128, through: BTreeMap<NodeId, String> },
    /// The cluster lists this node already; replication will reach it.
    Listed { cluster_id: u128 },
    /// This node was a member of the cluster, which does not list it: either who said so is behind, or the node was removed,
    /// which `members::removed` finds out.
    Unlisted { cluster_id: u128 },
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Wait { silent, founder } if silent.is_empty() => {
                write!(f, "waiting for node {founder} to found the cluster")
            }
            Self::Wait { silent, .. } => write!(f, "waiting for {} of the join list to answer", nodes(silent)),
            Self::Found { founder, others, .. } => {
                write!(f, "founding a cluster of {}", nodes([founder].into_iter().chain(others.keys())))
            }
            Self::Join { cluster_id, .. } => write!(f, "joining cluster {cluster_id:032x}"),
            Self::Listed { cluster_id } => write!(f, "waiting for the log of cluster {cluster_id:032x}"),
            Self::Unlisted { cluster_id } => {
                write!(f, "asking cluster {cluster_id:032x} whether this node is still a member")
            }
        }
    }
}

/// These nodes, for people: `node 1`, `nodes 1, 2, 3`.
fn nodes<'n>(ids: impl IntoIterator<Item = &'n NodeId>) -> String {
    let ids: Vec<String> = ids.into_iter().map(ToString::to_string).collect();
    format!("{} {}", if ids.len() == 1 { "node" } else { "nodes" }, ids.join(", "))
}

/// The pure decision.
fn decide(
    self_id: NodeId,
    identity: &quorate_store::identity::Identity,
    list: &JoinList,
    was_member: bool,
    hellos: &BTreeMap<NodeId, HelloAnswer>,
) -> Result<Step, Refusal> {
    for hello in hellos.values() {
        if let (Some(cluster_id), Some(membership)) = (hello.cluster_id, &hello.membership) {
            return match membership.nodes.get(&self_id) {
                Some(member) if member.incarnation != identity.incarnation => {
                    Err(wiped(self_id, cluster_id, member.incarnation))
                }
                Some(_) if votes(membership, self_id) => Ok(Step::Listed { cluster_id }),
                None if was_member => Ok(Step::Unlisted { cluster_id }),
                // A stranger, or a learner whose joining was interrupted.
                Some(_) | None => {
                    let through = membership.nodes.iter().map(|(id, member)| (*id, member.peer_addr.clone())).collect();
                    Ok(Step::Join { cluster_id, through })
                }
            };
        }
    }
    let silent: Vec<NodeId> = list.keys().copied().filter(|id| *id != self_id && !hellos.contains_key(id)).collect();
    let founder = *list.keys().next().ok_or_else(|| Refusal::from("the join list is empty".to_owned()))?;
    if founder != self_id || !silent.is_empty() {
        return Ok(Step::Wait { silent, founder });
    }
    let cluster_id = agreed_cluster(identity.cluster_id, hellos)?;
    let others = hellos.iter().map(|(id, hello)| (*id, hello.member.clone())).collect();
    Ok(Step::Found { founder, cluster_id, others })
}

fn wiped(self_id: NodeId, cluster_id: u128, known: u128) -> Refusal {
    Refusal::of_the_id(format!(
        "node {self_id} is a member of cluster {cluster_id:032x} with another disk (incarnation {known:032x}), and this data \
         directory is new: a node that lost its disk must not come back as itself. Bring the old directory back, or remove \
         node {self_id} from the cluster and start under a node id that was never used, or under its own with an invitation by \
         `quorate member invite --id {self_id}`"
    ))
}

/// The id that an interrupted founding left behind, if any.
fn agreed_cluster(own: Option<u128>, hellos: &BTreeMap<NodeId, HelloAnswer>) -> Result<Option<u128>, Refusal> {
    let mut agreed = own;
    for hello in hellos.values() {
        match (agreed, hello.cluster_id) {
            (Some(one), Some(other)) if one != other => {
                return Err(Refusal::from(format!(
                    "node {} belongs to cluster {other:032x}, others of the join list to {one:032x}: they cannot form one cluster",
                    hello.node_id
                )));
            }
            (None, Some(other)) => agreed = Some(other),
            _ => {}
        }
    }
    Ok(agreed)
}

/// Whether a node of the list is another one, at another place. A node that came in the place of one that lost its disk is at the
/// address that the list has for that.
fn is_elsewhere(service: &Service, id: NodeId, addr: &str) -> bool {
    id != service.identity.load().node_id && addr != service.member.peer_addr
}

/// Asks all others who they are. Silence is no answer; a refusal ends this node. An answer says, too, that this disk is not
/// another cluster's. Who answers is asked, not who is expected: where the founder of an address lost its disk, another node of the
/// cluster is there now.
async fn ask_all(app: &App, service: &Service, list: &JoinList) -> Result<BTreeMap<NodeId, HelloAnswer>, Refusal> {
    let others = list.iter().filter(|(id, addr)| is_elsewhere(service, **id, addr));
    let questions = others.map(|(id, addr)| async move {
        (*id, app.peers().ask_at(addr, None, PeerRequest::Hello, Instant::now() + ASK).await)
    });
    let mut hellos = BTreeMap::new();
    for (id, answer) in join_all(questions).await {
        match answer {
            Ok(PeerResponse::Hello(hello)) if hello.node_id == id || hello.membership.is_some() => {
                hellos.insert(id, hello);
            }
            Ok(PeerResponse::Hello(hello)) if list.contains_key(&hello.node_id) => {
                return Err(Refusal::from(format!(
                    "node {} answers at {}, where the join list has node {id}: give each node its own address there",
                    hello.node_id, list[&id]
                )));
            }
            // Somebody who comes in the place of that node, and is of no cluster yet.
            Ok(PeerResponse::Hello(hello)) => {
                quorate_node_core::debug!(node = id, is = hello.node_id, "another node answers")
            }
            Ok(other) => tracing::warn!(node = id, ?other, "an answer to Hello that is none"),
            Err(QueryError::Call(CallError::Refused(refusal))) => {
                return Err(refusal.by(format_args!("node {id} of the join list refuses this node")));
            }
            Err(error) => quorate_node_core::debug!(node = id, %error, "no answer to Hello"),
        }
    }
    if !hellos.is_empty() {
        app.reads().trust_disk();
    }
    Ok(hellos)
}

/// Founds the cluster: own disk first, then the others', then Raft. Each step may be repeated after a crash.
async fn found(
    app: &App,
    service: &Arc<Service>,
    list: &JoinList,
    cluster_id: Option<u128>,
    mut members: BTreeMap<NodeId, MemberRecord>,
) -> Result<(), Refusal> {
    let cluster_id = cluster_id.unwrap_or_else(rand::random);
    record(service, cluster_id).await?;
    for (id, addr) in list.iter().filter(|(id, _)| **id != app.node_id()) {
        match app.peers().ask_at(addr, Some(*id), PeerRequest::Adopt { cluster_id }, Instant::now() + ASK).await {
            Ok(PeerResponse::Done) => {}
            Ok(PeerResponse::Refused { reason }) => {
                return Err(Refusal::from(format!("node {id} refuses adoption: {reason}")));
            }
            // The next round asks again, with the same cluster id.
            Ok(_) | Err(_) => return Ok(()),
        }
    }
    members.insert(app.node_id(), service.member.clone());
    let members: BTreeMap<NodeId, Member> = members.into_iter().map(|(id, member)| (id, member.into())).collect();
    match app.raft().initialize(members).await {
        Ok(()) | Err(RaftError::APIError(InitializeError::NotAllowed(_))) => Ok(()),
        Err(error) => Err(Refusal::from(format!("the cluster could not be founded: {error}"))),
    }
}

async fn join(
    app: &App,
    service: &Arc<Service>,
    cluster_id: u128,
    through: &BTreeMap<NodeId, String>,
    credential: &JoinCredential,
) -> Result<(), NoMember> {
    record(service, cluster_id).await?;
    let (node_id, member, as_standby) = (app.node_id(), service.member.clone(), credential.as_standby);
    let question = match credential.invitation().await? {
        Shown::Nothing => PeerRequest::Join { node_id, member, as_standby, invitation: None },
        Shown::Invitation(invitation) => {
            PeerRequest::Join { node_id, member, as_standby, invitation: Some(invitation) }
        }
        // As below: it may be made safe while this node waits.
        Shown::Open(reason) => {
            credential.say(&reason);
            tokio::time::sleep(ASK_AGAIN).await;
            return Ok(());
        }
    };
    for (id, addr) in through {
        match app.peers().ask_at(addr, Some(*id), question.clone(), Instant::now() + JOIN).await {
            Ok(PeerResponse::Done) => return Ok(()),
            Ok(PeerResponse::TryAgain) => {
                tokio::time::sleep(ASK_AGAIN).await;
                return Ok(());
            }
            Ok(PeerResponse::Refused { reason }) => {
                return Err(Refusal::from(format!("node {id} refuses to take this node in: {reason}")).into());
            }
            Ok(PeerResponse::IdTaken { reason }) => {
                return Err(Refusal::of_the_id(format!("node {id} refuses to take this node in: {reason}")).into());
            }
            Ok(PeerResponse::Membership { is_member: false }) => return Err(NoMember::Removed),
            Ok(PeerResponse::IdRemoved { reason }) if credential.has_spare_ids => {
                return Err(Refusal::of_the_id(reason).into());
            }
            // An operator can do something about it while this node waits.
            Ok(PeerResponse::NotInvited { reason } | PeerResponse::IdRemoved { reason }) => {
                credential.say(&reason);
                tokio::time::sleep(ASK_AGAIN).await;
                return Ok(());
            }
            // Not the leader, or silent: another one, or the next round.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

async fn record(service: &Arc<Service>, cluster_id: u128) -> Result<(), Refusal> {
    service.record_cluster(cluster_id).await.map_err(Refusal::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_store::identity::Identity;

    fn list() -> JoinList {
        (1..=3).map(|id| (id, format!("127.0.0.1:720{id}"))).collect()
    }

    fn identity(node_id: NodeId) -> Identity {
        Identity { cluster_id: None, node_id, incarnation: u128::from(node_id) }
    }

    fn member(id: NodeId) -> MemberRecord {
        MemberRecord { peer_addr: format!("127.0.0.1:720{id}"), client_addr: String::new(), incarnation: id.into() }
    }

    fn hello(id: NodeId, cluster_id: Option<u128>, members: &[NodeId]) -> (NodeId, HelloAnswer) {
        let nodes: BTreeMap<_, _> = members.iter().map(|id| (*id, member(*id))).collect();
        let configs = vec![members.iter().copied().collect()];
        let membership = (!members.is_empty()).then_some(MembershipRecord { configs, nodes });
        (id, HelloAnswer { node_id: id, member: member(id), cluster_id, membership, level_known: 1 })
    }

    #[tokio::test]
    async fn an_invitation_that_others_may_read_is_not_shown() {
        use std::os::unix::fs::PermissionsExt;

        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("join.token");
        let credential = JoinCredential { invitation_file: Some(path.clone()), ..JoinCredential::default() };
        let read = async || credential.invitation().await.expect("it can be looked at");
        assert!(matches!(read().await, Shown::Nothing), "it may be missing");
        std::fs::write(&path, "\n").expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("it is ours");
        assert!(matches!(read().await, Shown::Nothing), "there is no secret in it");
        std::fs::write(&path, "qj_secret\n").expect("written");
        let Shown::Open(why) = read().await else { panic!("others may read it") };
        assert!(why.contains("join.token has the mode 644") && !why.contains("qj_"), "{why}");
        quorate_node_core::file_mode::write_secret(&path, "qj_secret\n");
        assert!(matches!(read().await, Shown::Invitation(shown) if shown.0 == "qj_secret"));
    }

    #[test]
    fn only_the_lowest_node_founds_and_only_when_all_answered() {
        let both = BTreeMap::from([hello(2, None, &[]), hello(3, None, &[])]);
        let step = decide(1, &identity(1), &list(), false, &both).unwrap();
        assert!(matches!(step, Step::Found { cluster_id: None, .. }), "{step:?}");
        assert_eq!(step.to_string(), "founding a cluster of nodes 1, 2, 3");
        let one = BTreeMap::from([hello(2, None, &[])]);
        let step = decide(1, &identity(1), &list(), false, &one).unwrap();
        assert_eq!(step, Step::Wait { silent: vec![3], founder: 1 });
        assert_eq!(step.to_string(), "waiting for node 3 of the join list to answer");
        let alone = decide(1, &identity(1), &JoinList::from([(1, "127.0.0.1:7201".into())]), false, &BTreeMap::new());
        assert_eq!(alone.unwrap().to_string(), "founding a cluster of node 1");
        let others = BTreeMap::from([hello(1, None, &[]), hello(3, None, &[])]);
        let step = decide(2, &identity(2), &list(), false, &others).unwrap();
        assert_eq!(step, Step::Wait { silent: vec![], founder: 1 });
    }

    #[test]
    fn an_interrupted_founding_continues_under_its_cluster_id() {
        let hellos = BTreeMap::from([hello(2, Some(7), &[]), hello(3, None, &[])]);
        let step = decide(1, &identity(1), &list(), false, &hellos).unwrap();
        assert!(matches!(step, Step::Found { cluster_id: Some(7), .. }), "{step:?}");
        let torn = BTreeMap::from([hello(2, Some(7), &[]), hello(3, Some(8), &[])]);
        assert!(decide(1, &identity(1), &list(), false, &torn).unwrap_err().reason.contains("cannot form one cluster"));
    }

    #[test]
    fn a_wiped_node_is_refused_under_its_old_id() {
        let hellos = BTreeMap::from([hello(2, Some(7), &[1, 2, 3])]);
        let wiped = Identity { incarnation: 99, ..identity(1) };
        let refusal = decide(1, &wiped, &list(), false, &hellos).unwrap_err();
        assert!(refusal.reason.contains("lost its disk") && refusal.is_of_the_id, "{refusal}");
        assert_eq!(decide(1, &identity(1), &list(), false, &hellos).unwrap(), Step::Listed { cluster_id: 7 });
    }

    #[tokio::test]
    async fn what_has_nothing_to_do_with_the_id_is_told_apart() {
        let dir = tempfile::tempdir().expect("a directory");
        // A directory cannot be read as a file.
        let credential = JoinCredential { invitation_file: Some(dir.path().into()), ..JoinCredential::default() };
        let refused = credential.invitation().await.expect_err("it cannot be read");
        assert!(!refused.is_of_the_id && refused.reason.contains("join_token_file"), "{refused}");
        let torn = BTreeMap::from([hello(2, Some(7), &[]), hello(3, Some(8), &[])]);
        assert!(!decide(1, &identity(1), &list(), false, &torn).unwrap_err().is_of_the_id);
        let known = wiped(1, 7, 1);
        assert!(known.is_of_the_id, "{known}");
    }

    #[test]
    fn a_disk_is_doubtful_where_it_knows_none_of_the_others_it_is_listed_with() {
        let of = |members: &[NodeId]| -> Membership {
            let nodes = members.iter().map(|id| (*id, member(*id))).collect();
            let configs = if members.is_empty() { vec![] } else { vec![members.iter().copied().collect()] };
            MembershipRecord { configs, nodes }.try_into().unwrap()
        };
        assert!(is_doubtful(1, &of(&[1]), &list()), "a cluster of one, listed with two others");
        assert!(is_doubtful(1, &of(&[1, 4, 5]), &list()), "a cluster of others");
        assert!(!is_doubtful(1, &of(&[1, 3]), &list()), "one of the others is enough");
        assert!(!is_doubtful(1, &of(&[]), &list()), "an empty disk is of no cluster yet");
        let alone = BTreeMap::from([(1, "127.0.0.1:7201".to_owned())]);
        assert!(!is_doubtful(1, &of(&[1]), &alone), "there are no others");
    }

    #[test]
    fn an_empty_node_joins_a_cluster_that_does_not_list_it() {
        let hellos = BTreeMap::from([hello(2, Some(7), &[2, 3])]);
        let step = decide(1, &identity(1), &list(), false, &hellos).unwrap();
        assert!(matches!(step, Step::Join { cluster_id: 7, .. }), "{step:?}");
    }

    #[test]
    fn a_node_with_a_log_does_not_join_a_cluster_that_does_not_list_it_once_more() {
        let hellos = BTreeMap::from([hello(2, Some(7), &[2, 3])]);
        let step = decide(1, &identity(1), &list(), true, &hellos).unwrap();
        assert_eq!(step, Step::Unlisted { cluster_id: 7 });
    }

    #[test]
    fn a_node_beside_the_list_founds_nothing() {
        let hellos = (1..=3).map(|id| hello(id, None, &[])).collect();
        let step = decide(4, &identity(4), &list(), false, &hellos).unwrap();
        assert_eq!(step, Step::Wait { silent: vec![], founder: 1 });
    }

    #[test]
    fn a_learner_is_in_only_as_a_standby() {
        let membership = hello(1, Some(7), &[1, 2, 3]).1.membership.unwrap();
        let mut demoted = membership.clone();
        demoted.configs = vec![[1, 2].into()];
        assert!(is_in(&membership, 3, false) && is_in(&membership, 3, true));
        assert!(!is_in(&demoted, 3, false) && is_in(&demoted, 3, true));
        assert!(!is_in(&membership, 4, true), "a stranger");
    }
}
