//! The settings of an archive.
//!
//! Owns their defaults and ranges, and the reading of its keys and of those of scheduled backups.

use std::path::PathBuf;
use std::time::Duration;

use quorate_archive::{ArchiveError, Keys, Location, MacKeys, Merging, Recipients, Retention};
use quorate_node_replica::app::archive::{ArchiveSettings, read_keys, read_macs};

use super::Args;
use super::faults::{DAY_MS, Faults, HUGE};

/// Spans of so long become one object, and days of them.
const HOUR_MS: u64 = 60 * 60 * 1_000;

/// The settings, where an archive is named.
pub(super) fn settings(args: &mut Args, faults: &mut Faults) -> Option<ArchiveSettings> {
    let interval = faults.millis("archive_interval_ms", args.archive_interval_ms.unwrap_or(5_000), 100, DAY_MS);
    let base_every_ms = args.archive_base_every_ms.unwrap_or(DAY_MS);
    let base_every = faults.millis("archive_base_every_ms", base_every_ms, 1_000, 365 * DAY_MS);
    let keep_ms = faults.within("archive_keep_ms", args.archive_keep_ms.unwrap_or(7 * DAY_MS), 0, 36_500 * DAY_MS);
    let bases_min = faults.size("archive_keep_bases", args.archive_keep_bases.unwrap_or(2), 1, 1_000_000);
    let hold_bytes = faults.within("archive_hold_bytes", args.archive_hold_bytes.unwrap_or(4 << 30), 64 << 20, HUGE);
    let verify_every_ms =
        faults.within("archive_verify_every_ms", args.archive_verify_every_ms.unwrap_or(DAY_MS), 0, 365 * DAY_MS);
    let span_ms = match args.archive_merge_ms {
        Some(0) => 0,
        given => faults.within("archive_merge_ms", given.unwrap_or(HOUR_MS), 1_000, 365 * DAY_MS),
    };
    let Some(location) = args.archive.take() else {
        // A setting of an archive that is not there is a mistake.
        for field in args.given("archive_") {
            faults.add(field, "nothing is archived without a place for it; say --archive LOCATION too");
        }
        return None;
    };
    let location = noted("archive", location.parse::<Location>(), faults);
    let keys = args.archive_key.take().map(|path| noted("archive_key", read_keys(&path), faults));
    let keys = match keys {
        Some(read) => read?,
        None => Keys::default(),
    };
    let macs = mac_keys("archive_mac_key", args.archive_mac_key.take(), faults)?;
    let list = args.archive_recipients.take();
    let recipients = recipients("archive_recipients", list, || keys.recipients(), faults)?;
    Some(ArchiveSettings {
        location: location?,
        interval,
        base_every,
        retention: Retention { keep_ms, bases_min },
        recipients,
        keys,
        macs,
        hold_bytes,
        verify_every: (verify_every_ms > 0).then(|| Duration::from_millis(verify_every_ms)),
        merging: (span_ms > 0).then_some(Merging { span_ms }),
    })
}

/// Those in a list, or others where there is none; `None` where there is a fault in it.
pub(super) fn recipients(
    field: &'static str,
    list: Option<String>,
    otherwise: impl FnOnce() -> Recipients,
    faults: &mut Faults,
) -> Option<Recipients> {
    match list {
        Some(list) => noted(field, Recipients::parse(list.split(',')), faults),
        None => Some(otherwise()),
    }
}

/// Those in a file, or none where there is none; `None` where there is a fault in it.
pub(super) fn mac_keys(field: &'static str, path: Option<PathBuf>, faults: &mut Faults) -> Option<MacKeys> {
    match path {
        Some(path) => noted(field, read_macs(&path), faults),
        None => Some(MacKeys::default()),
    }
}

fn noted<T>(field: &'static str, read: Result<T, ArchiveError>, faults: &mut Faults) -> Option<T> {
    read.map_err(|error| faults.add(field, error.to_string())).ok()
}
