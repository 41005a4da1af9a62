//! Hostile clients among honest ones: what they do, and what honest clients lose by it.
//!
//! Owns the kinds of attacks, the honest clients and the measure. Each attack is a thousand connections, or fewer, that do the same until
//! they are told to stop; they come from loopback addresses other than those of honest clients. Never leaves loopback.

/// An enum of kinds, all of them in their order, and what each is called.
macro_rules! kinds {
    ($(#[$of:meta])* $name:ident { $($(#[$doc:meta])* $kind:ident = $words:literal,)+ }) => {
        $(#[$of])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$doc])* $kind,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: [Self; [$($words),+].len()] = [$(Self::$kind),+];
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self {
                    $(Self::$kind => $words,)+
                })
            }
        }
    };
}

pub mod asker;
pub mod attacks;
mod errands;
pub mod frames;
pub mod generator;
pub mod honest;
#[path = "../../../node/http/tests/http_api/http_2.rs"]
mod http_2;
pub mod measure;
mod user;
pub mod way;

pub use attacks::{ATTACKS, Attack, NICENESS, Target, source};
pub use honest::{FROM, Honest, Load};
pub use measure::{Broken, Measure, Measured, Quiet};
pub use user::create_user;
pub use way::Way;
