//! Cron patterns: when a task comes again.
//!
//! Owns what a pattern may be and its next time. The search is bounded by steps, whatever the pattern is. Never runs at apply: tables
//! of time zones differ between builds, so the leader reckons and the log has the result.

use std::cell::Cell;
use std::cmp::Ordering;
use std::sync::LazyLock;

use croner::errors::CronError;
use croner::parser::{CronParser, Year};
use croner::{CivilDateTime, Cron, CronDateTime, Direction, Resolution, TimeComponent, Weekday};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan, Zoned};
use quorate_store::types::WallMillis;

/// A pattern without a time in so many years never fires for anybody.
const YEARS_MAX: i64 = 5;

/// Times that a search looks at: those of an hour that clocks left out are gone through one by one. Others need a few.
const STEPS_MAX: u32 = 8_000;

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
    reckon(&parse(pattern)?, zone, after).map(|(next, _)| next)
}

/// Checks a pattern that somebody gives: it has a next time, and nothing in it is left empty. (An empty part of a list is read as
/// nothing, and a field of nothing but such parts fits no time.)
pub fn check(pattern: &str, zone: &str, after: WallMillis) -> Result<(), CronFault> {
    let has_gap = |field: &str| field.contains(',') && field.split(',').any(|part| part.is_empty());
    if pattern.split_whitespace().any(has_gap) {
        return Err(CronFault::Pattern(
            "a list has an empty part: there must be a value on both sides of each comma".into(),
        ));
    }
    next(pattern, zone, after).map(drop)
}

/// The next time, and how many times were looked at.
fn reckon(cron: &Cron, zone: &str, after: WallMillis) -> Result<(WallMillis, u32), CronFault> {
    let zone = zone_of(zone)?;
    let start =
        i64::try_from(after).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).ok_or(CronFault::Never)?;
    let start = start.to_zoned(zone);
    let last = start.checked_add(YEARS_MAX.years()).map_err(|_| CronFault::Never)?;
    if !has_times(cron) || !has_date(cron, &start, &last) {
        return Err(CronFault::Never);
    }
    let search = Search { last: last.datetime(), steps: Cell::new(0) };
    let next =
        cron.find_next_occurrence(&Looked { at: start, search: &search }, false).map_err(|_| CronFault::Never)?.at;
    let ms = u64::try_from(next.timestamp().as_millisecond()).map_err(|_| CronFault::Never)?;
    // A plan that is not later than what it follows would come again and again.
    if next > last || ms <= after { Err(CronFault::Never) } else { Ok((ms, search.steps.get())) }
}

/// Whether some time of day fits.
fn has_times(cron: &Cron) -> bool {
    [TimeComponent::Hour, TimeComponent::Minute, TimeComponent::Second]
        .into_iter()
        .all(|part| matches!(cron.pattern.find_match_in_component(0, part, Direction::Forward), Ok(Some(_))))
}

/// Whether some date fits: the search itself looks for one for thousands of years.
fn has_date(cron: &Cron, first: &Zoned, last: &Zoned) -> bool {
    let fits = |date: jiff::civil::Date| {
        let (year, month, day) = (i32::from(date.year()), date.month().unsigned_abs(), date.day().unsigned_abs());
        let weekday = Weekday::from_days_from_sunday(date.weekday().to_sunday_zero_offset().unsigned_abs().into());
        cron.pattern.month_match(month.into()).unwrap_or(false)
            && cron.pattern.day_match(year, month.into(), day.into(), weekday).unwrap_or(false)
    };
    first.date().series(1.day()).take_while(|date| *date <= last.date()).any(fits)
}

/// What a search may still do.
struct Search {
    last: jiff::civil::DateTime,
    steps: Cell<u32>,
}

/// A time that counts what is looked at from it.
#[derive(Clone)]
struct Looked<'s> {
    at: Zoned,
    search: &'s Search,
}

impl<'s> Looked<'s> {
    fn with(&self, at: Zoned) -> Self {
        Self { at, search: self.search }
    }
}

impl CronDateTime for Looked<'_> {
    fn to_civil(&self) -> CivilDateTime {
        self.at.to_civil()
    }

    fn civil_weekday(&self) -> Weekday {
        self.at.civil_weekday()
    }

    fn resolve_civil(&self, civil: CivilDateTime) -> Result<Resolution<Self>, CronError> {
        let steps = self.search.steps.get() + 1;
        self.search.steps.set(steps);
        if steps > STEPS_MAX || civil.year() > i32::from(self.search.last.year()) {
            return Err(CronError::TimeSearchLimitExceeded);
        }
        Ok(match self.at.resolve_civil(civil)? {
            Resolution::Single(at) => Resolution::Single(self.with(at)),
            Resolution::Ambiguous(earlier, later) => Resolution::Ambiguous(self.with(earlier), self.with(later)),
            Resolution::Gap => Resolution::Gap,
        })
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        self.at.checked_add_seconds(seconds).map(|at| self.with(at))
    }

    fn cmp_instant(&self, other: &Self) -> Ordering {
        self.at.cmp_instant(&other.at)
    }
}

fn parse(pattern: &str) -> Result<Cron, CronFault> {
    let parser = CronParser::builder().year(Year::Disallowed).build();
    parser.parse(pattern).map_err(|error| CronFault::Pattern(error.to_string()))
}

/// The tables of this build, whatever the machine has: all nodes of one build reckon alike.
fn zone_of(name: &str) -> Result<TimeZone, CronFault> {
    static TABLES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
    TABLES.get(name).map_err(|_| CronFault::Zone)
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
    fn an_empty_part_of_a_list_is_refused_where_it_is_given_and_no_pattern_searches_for_long() {
        let begin = std::time::Instant::now();
        for bad in
            [", * * * * *", "* * * * , *", ",,, * * * *", "1,,2 * * * *", "1, * * * *", "* ,5 * * *", "* * , * *"]
        {
            let fault = check(bad, "UTC", 1_795_000_000_000).expect_err(bad);
            assert!(matches!(&fault, CronFault::Pattern(why) if why.contains("empty part")), "{bad}: {fault}");
        }
        // Those that are stored go on.
        assert!(next("1,,2 * * * *", "UTC", 1_795_000_000_000).is_ok());
        for never in
            [", * * * * *", "* , * * *", "* * , * *", "* * * , *", "0 0 31 * +MON#1", "0 0 30 2 *", "* * 31 2,4,6 *"]
        {
            assert_eq!(next(never, "Europe/Berlin", 1_795_000_000_000), Err(CronFault::Never), "{never}");
        }
        // About a millisecond each in release builds; before, one of them took seconds.
        let took = begin.elapsed();
        assert!(took < std::time::Duration::from_secs(1), "{took:?}");
    }

    #[test]
    fn a_search_through_gaps_is_counted() {
        // 29 March is the day of the gap in 2026 and 2037 only; the seconds of the gap are gone through one by one.
        let after: Timestamp = "2026-03-28T12:00:00Z".parse().expect("a time");
        let after = u64::try_from(after.as_millisecond()).expect("after 1970");
        let (_, steps) = reckon(&parse("*/7 * 2 29 3 *").expect("a pattern"), "Europe/Berlin", after).expect("a time");
        assert!(steps < STEPS_MAX, "{steps}");
        let (_, steps) = reckon(&parse("0 3 * * MON").expect("a pattern"), "Europe/Berlin", after).expect("a time");
        assert!(steps < 50, "{steps}");
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
