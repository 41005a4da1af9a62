//! Which kinds of operations, in which shares.

use std::fmt;
use std::str::FromStr;

/// A kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Overwrite a random key.
    Put,
    /// Read a random key.
    Get,
    /// Overwrite an entry on its cas.
    Cas,
    /// Count in a document on a condition.
    Update,
}

impl Kind {
    /// All of them, in the order of the report.
    pub const ALL: [Self; Self::COUNT] = [Self::Put, Self::Get, Self::Cas, Self::Update];

    /// How many there are.
    pub const COUNT: usize = 4;

    /// As in `--mix`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Cas => "cas",
            Self::Update => "update",
        }
    }
}

/// Shares of the kinds. Invariant: they do not add up to zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mix {
    shares: [u32; Kind::COUNT],
}

impl Mix {
    /// The kind at this place of 0..[`Self::total`].
    pub fn kind_at(&self, mut place: u32) -> Kind {
        for (kind, share) in Kind::ALL.into_iter().zip(self.shares) {
            match place.checked_sub(share) {
                None => return kind,
                Some(rest) => place = rest,
            }
        }
        unreachable!("a place is less than the total of {}, this is {place} beyond it", self.total())
    }

    /// Sum of the shares.
    pub fn total(&self) -> u32 {
        self.shares.iter().sum()
    }

    /// Whether there are reads.
    pub fn reads(&self) -> bool {
        self.shares[Kind::Get as usize] > 0
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut shares = [0; Kind::COUNT];
        for part in text.split(',') {
            let (name, share) = part.split_once('=').ok_or_else(|| format!("`{part}` is not like put=100"))?;
            let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name.trim());
            let kind = kind.ok_or_else(|| format!("`{name}` is none of put, get, cas, update"))?;
            let share: u16 = share.trim().parse().map_err(|_| format!("`{share}` is not a share of 0 to 65535"))?;
            shares[kind as usize] = share.into();
        }
        let mix = Self { shares };
        if mix.total() == 0 { Err("all shares are 0".into()) } else { Ok(mix) }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = Kind::ALL.into_iter().zip(self.shares).filter(|(_, share)| *share > 0);
        let parts: Vec<String> = used.map(|(kind, share)| format!("{}={share}", kind.name())).collect();
        out.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_gets_its_share_of_the_places() {
        let mix: Mix = "cas=1, put=2,get=3".parse().expect("valid");
        let kinds: Vec<Kind> = (0..mix.total()).map(|place| mix.kind_at(place)).collect();
        assert_eq!(kinds, [Kind::Put, Kind::Put, Kind::Get, Kind::Get, Kind::Get, Kind::Cas]);
        assert_eq!(mix.to_string(), "put=2,get=3,cas=1");
    }

    #[test]
    fn a_mix_of_nothing_or_of_strangers_is_refused() {
        for bad in ["", "put", "put=0", "set=1", "put=-1", "put=1;get=2"] {
            assert!(bad.parse::<Mix>().is_err(), "{bad:?}");
        }
    }
}
