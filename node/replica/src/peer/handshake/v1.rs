//! Version 1 of what both sides say.

use bincode::{Decode, Encode};
use quorate_machine::level::Level;
use quorate_store::raft::wire::MemberRecord;

/// See [`super::Hello`].
#[derive(Encode, Decode)]
pub struct Hello {
    pub format_version: u8,
    pub channel: u8,
    pub cluster_id: Option<u128>,
    pub node_id: u64,
    pub incarnation: u128,
    pub member: MemberRecord,
    pub to_node: Option<u64>,
    pub level_known: Level,
    pub formats_read: (u8, u8),
}

/// See [`super::Welcome`].
#[derive(Encode, Decode)]
pub struct Welcome {
    pub format_version: u8,
    pub cluster_id: Option<u128>,
    pub node_id: u64,
    pub incarnation: u128,
    pub refusal: Refusal,
    pub level_known: Level,
    pub formats_read: (u8, u8),
}

/// See [`super::Refusal`]. The first two have the bytes of an `Option<String>`.
#[derive(Encode, Decode)]
pub enum Refusal {
    None,
    OfTheNode(String),
    OfTheId(String),
}

impl From<Option<&super::Refusal>> for Refusal {
    fn from(refusal: Option<&super::Refusal>) -> Self {
        match refusal {
            None => Self::None,
            Some(super::Refusal { reason, is_of_the_id: false }) => Self::OfTheNode(reason.clone()),
            Some(super::Refusal { reason, is_of_the_id: true }) => Self::OfTheId(reason.clone()),
        }
    }
}

impl From<Refusal> for Option<super::Refusal> {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::None => None,
            Refusal::OfTheNode(reason) => Some(super::Refusal { reason, is_of_the_id: false }),
            Refusal::OfTheId(reason) => Some(super::Refusal { reason, is_of_the_id: true }),
        }
    }
}

impl From<&super::Hello> for Hello {
    fn from(hello: &super::Hello) -> Self {
        Self {
            format_version: hello.format_version,
            channel: hello.channel,
            cluster_id: hello.cluster_id,
            node_id: hello.node_id,
            incarnation: hello.incarnation,
            member: hello.member.clone(),
            to_node: hello.to_node,
            level_known: hello.level_known,
            formats_read: hello.formats_read,
        }
    }
}

impl From<Hello> for super::Hello {
    fn from(hello: Hello) -> Self {
        Self {
            protocol: 1,
            formats_read: hello.formats_read,
            format_version: hello.format_version,
            channel: hello.channel,
            cluster_id: hello.cluster_id,
            node_id: hello.node_id,
            incarnation: hello.incarnation,
            member: hello.member,
            to_node: hello.to_node,
            level_known: hello.level_known,
        }
    }
}

impl From<&super::Welcome> for Welcome {
    fn from(welcome: &super::Welcome) -> Self {
        Self {
            format_version: welcome.format_version,
            cluster_id: welcome.cluster_id,
            node_id: welcome.node_id,
            incarnation: welcome.incarnation,
            refusal: welcome.refusal.as_ref().into(),
            level_known: welcome.level_known,
            formats_read: welcome.formats_read,
        }
    }
}

impl From<Welcome> for super::Welcome {
    fn from(welcome: Welcome) -> Self {
        Self {
            protocol: 1,
            formats_read: welcome.formats_read,
            format_version: welcome.format_version,
            cluster_id: welcome.cluster_id,
            node_id: welcome.node_id,
            incarnation: welcome.incarnation,
            refusal: welcome.refusal.into(),
            level_known: welcome.level_known,
        }
    }
}
