//! How the cas of an entry is shown.

use quorate_client::Cas;

/// A token, or what is said instead where there is none.
pub fn shown(cas: Option<Cas>, none: &str) -> String {
    cas.map_or_else(|| none.to_owned(), |cas| cas.to_string())
}
