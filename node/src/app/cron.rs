//! Cron patterns: when a task comes again.
//!
//! Owns what a pattern may be and its next time. Never runs at apply: tables of time zones differ between builds, so the
//! leader reckons and the log has the result.

use croner::Cron;
use croner::parser::{CronParser, Year};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan};
use quorate_store::types::WallMillis;

/// A pattern without a time in so many years never fires for anybody.
const YEARS_MAX: i64 = 5;

/// Why there is no next time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronFault {
    /// It is no pattern.
    #[error("{0}")]
    Pattern(String),
    /// There is no such time zone.
    #[error("no such time zone; give an IANA name such as `Europe/Berlin`")]
    Zone,
    /// No time fits it.
    #[error("the pattern has no time within {YEARS_MAX} years")]
    Never,
}

/// The first time after `after` that fits the pattern in the zone.
///
/// Where clocks are set forward, a fixed time that is left out is taken at the first moment after the gap; where they are set
/// back, a fixed time is taken once, the first time. Patterns with `*` or steps go by the clock on the wall: what lies in a gap is
/// left out, what comes twice is taken twice.
pub fn next(pattern: &str, zone: &str, after: WallMillis) -> Result<WallMillis, CronFault> {
    let cron = parse(pattern)?;
    let zone = zone_of(zone)?;
    let start =
        i64::try_from(after).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).ok_or(CronFault::Never)?;
    let start = start.to_zoned(zone);
    let last = start.checked_add(YEARS_MAX.years()).map_err(|_| CronFault::Never)?;
    let next = cron.find_next_occurrence(&start, false).map_err(|_| CronFault::Never)?;
    let ms = u64::try_from(next.timestamp().as_millisecond()).map_err(|_| CronFault::Never)?;
    // A plan that is not later than what it follows would come again and again.
    if next > last || ms <= after { Err(CronFault::Never) } else { Ok(ms) }
}

fn parse(pattern: &str) -> Result<Cron, CronFault> {
    let parser = CronParser::builder().year(Year::Disallowed).build();
    parser.parse(pattern).map_err(|error| CronFault::Pattern(error.to_string()))
}

/// The tables of this build, whatever the machine has: all nodes of one build reckon alike.
fn zone_of(name: &str) -> Result<TimeZone, CronFault> {
    TimeZoneDatabase::bundled().get(name).map_err(|_| CronFault::Zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next_text(pattern: &str, zone: &str, after: &str) -> Result<String, CronFault> {
        let after: Timestamp = after.parse().expect("a time");
        let after = u64::try_from(after.as_millisecond()).expect("after 1970");
        let next = next(pattern, zone, after)?;
        Ok(Timestamp::from_millisecond(i64::try_from(next).expect("a time")).expect("a time").to_string())
    }

    #[test]
    fn patterns_are_read_in_their_zone() {
        let utc = |pattern, after| next_text(pattern, "UTC", after).expect("a next time");
        assert_eq!(utc("0 3 * * *", "2026-11-21T03:00:00Z"), "2026-11-22T03:00:00Z");
        assert_eq!(utc("0 3 * * *", "2026-11-21T02:59:59.999Z"), "2026-11-21T03:00:00Z");
        assert_eq!(utc("*/10 * * * * *", "2026-11-21T03:00:05Z"), "2026-11-21T03:00:10Z");
        assert_eq!(utc("0 0 29 2 *", "2026-11-21T03:00:05Z"), "2028-02-29T00:00:00Z");
        assert_eq!(utc("0 9 * * MON-FRI", "2026-11-20T10:00:00Z"), "2026-11-23T09:00:00Z");
        let berlin = next_text("30 8 * * *", "Europe/Berlin", "2026-07-01T00:00:00Z");
        assert_eq!(berlin.as_deref(), Ok("2026-07-01T06:30:00Z"));
    }

    #[test]
    fn clocks_that_are_set_forward_and_back_lose_no_fixed_time_and_double_none() {
        let berlin = |after| next_text("30 2 * * *", "Europe/Berlin", after).expect("a next time");
        // 2:30 is left out on 29 March 2026.
        assert_eq!(berlin("2026-03-28T12:00:00Z"), "2026-03-29T01:00:00Z");
        assert_eq!(berlin("2026-03-29T01:00:00Z"), "2026-03-30T00:30:00Z");
        // It comes twice on 25 October 2026.
        assert_eq!(berlin("2026-10-24T12:00:00Z"), "2026-10-25T00:30:00Z");
        assert_eq!(berlin("2026-10-25T00:30:00Z"), "2026-10-26T01:30:00Z");
    }

    #[test]
    fn what_never_fires_and_what_is_no_pattern_is_refused() {
        let never = |pattern| next_text(pattern, "UTC", "2026-11-21T00:00:00Z").expect_err("no next time");
        assert_eq!(never("0 0 30 2 *"), CronFault::Never);
        for bad in ["", "* * * *", "61 * * * *", "a b c d e", "* * * * * * 2030", "* * * * * * *"] {
            assert!(matches!(never(bad), CronFault::Pattern(_)), "{bad}: {:?}", never(bad));
        }
        assert_eq!(next_text("* * * * *", "Mars/Olympus", "2026-11-21T00:00:00Z"), Err(CronFault::Zone));
        assert_eq!(next("* * * * *", "UTC", u64::MAX), Err(CronFault::Never));
    }
}
