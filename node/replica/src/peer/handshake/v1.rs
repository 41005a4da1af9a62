//! Version 1 of what both sides say.

use bincode::{Decode, Encode};
use quorate_machine::level::Level;
use quorate_store::raft::wire::MemberRecord;

/// Makes the twin of a record: its fields in the order that they have in bytes, without the version, which stands before them.
macro_rules! twin {
    ($name:ident { $($field:ident: $type:ty,)* }) => {
        #[derive(Encode, Decode)]
        pub struct $name {
            $($field: $type,)*
        }

        impl From<super::$name> for $name {
            fn from(said: super::$name) -> Self {
                Self { $($field: said.$field.into(),)* }
            }
        }

        impl From<$name> for super::$name {
            fn from(read: $name) -> Self {
                Self { protocol: 1, $($field: read.$field.into(),)* }
            }
        }
    };
}

twin!(Hello {
    format_version: u8,
    channel: u8,
    cluster_id: Option<u128>,
    node_id: u64,
    incarnation: u128,
    member: MemberRecord,
    to_node: Option<u64>,
    level_known: Level,
    formats_read: (u8, u8),
});

twin!(Welcome {
    format_version: u8,
    cluster_id: Option<u128>,
    node_id: u64,
    incarnation: u128,
    refusal: Refusal,
    level_known: Level,
    formats_read: (u8, u8),
});

/// See [`super::Refusal`]. The first two have the bytes of an `Option<String>`.
#[derive(Encode, Decode)]
pub enum Refusal {
    None,
    OfTheNode(String),
    OfTheId(String),
}

impl From<Option<super::Refusal>> for Refusal {
    fn from(refusal: Option<super::Refusal>) -> Self {
        match refusal {
            None => Self::None,
            Some(super::Refusal { reason, is_of_the_id: false }) => Self::OfTheNode(reason),
            Some(super::Refusal { reason, is_of_the_id: true }) => Self::OfTheId(reason),
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
