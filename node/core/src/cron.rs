//! Cron patterns: when a task comes again.
//!
//! Owns what a pattern may be, its next time, and what becomes of times where clocks are changed. The parser and the search by the clock on
//! the wall are croner's, which is never asked about zones: it holds for fixed what has one time a day only. Never runs at apply: tables of
//! time zones differ between builds, so the leader reckons and the log has the result.

use std::sync::LazyLock;

use croner::parser::{CronParser, Year};
use croner::{Cron, Direction, TimeComponent, Weekday};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan, Zoned};
use quorate_machine::types::WallMillis;

/// A pattern without a time in so many years never fires for anybody.
const YEARS_MAX: i64 = 5;

/// The fields of a pattern, and how many values each has. The first may be left out.
const FIELDS: [(&str, u32); 6] =
    [("second", 60), ("minute", 60), ("hour", 24), ("day of month", 31), ("month", 12), ("day of week", 7)];

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
/// A pattern has fixed times unless its minute or its hour is `*` or `*/n`: as Vixie's cron has it, lists and ranges are fixed, too. Where
/// clocks are set forward, fixed times that are left out are taken at the first moment after the gap, all of them at once; where clocks are
/// set back, fixed times are taken once, the first time. Other patterns go by the clock on the wall: what lies in a gap is left out, what
/// comes twice is taken twice.
pub fn next(pattern: &str, zone: &str, after: WallMillis) -> Result<WallMillis, CronFault> {
    reckon(&parse(pattern)?, zone, after).map(|(next, _)| next)
}

/// Checks a pattern that somebody gives: it has a next time, nothing in it is left empty, and no step is longer than its field. (An empty
/// part of a list is read as nothing, and a field of nothing but such parts fits no time. A step that is too long takes the first value
/// alone: `*/70` would come each hour.)
pub fn check(pattern: &str, zone: &str, after: WallMillis) -> Result<(), CronFault> {
    let has_gap = |field: &str| field.contains(',') && field.split(',').any(|part| part.is_empty());
    if pattern.split_whitespace().any(has_gap) {
        return Err(CronFault::Pattern(
            "a list has an empty part: there must be a value on both sides of each comma".into(),
        ));
    }
    let cron = parse(pattern)?;
    let text = cron.to_string();
    for (field, (name, values)) in text.split_whitespace().rev().zip(FIELDS.into_iter().rev()) {
        let mut steps = field.split(',').filter_map(|part| Some((part, part.split_once('/')?.1.parse::<u32>().ok()?)));
        if let Some((part, step)) = steps.find(|(_, step)| *step > values) {
            return Err(CronFault::Pattern(format!(
                "the {name} `{part}` has a step of {step}, more than the {values} values of that field; for longer intervals use `every_ms`"
            )));
        }
    }
    reckon(&cron, zone, after).map(drop)
}

/// The next time, and how many searches it took: one, and one more for each change of the clocks that lies before it.
fn reckon(cron: &Cron, zone: &str, after: WallMillis) -> Result<(WallMillis, u32), CronFault> {
    let zone = zone_of(zone)?;
    let start =
        i64::try_from(after).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).ok_or(CronFault::Never)?;
    let first = start.to_zoned(zone.clone());
    let last = first.checked_add(YEARS_MAX.years()).map_err(|_| CronFault::Never)?;
    if !has_times(cron) || !has_date(cron, &first, &last) {
        return Err(CronFault::Never);
    }
    let last = last.timestamp();
    let (next, searches) =
        if is_fixed(cron) { (fixed(cron, &zone, start)?, 1) } else { by_the_clock(cron, &zone, start, last)? };
    let ms = u64::try_from(next.as_millisecond()).map_err(|_| CronFault::Never)?;
    // A plan that is not later than what it follows would come again and again.
    if next > last || ms <= after { Err(CronFault::Never) } else { Ok((ms, searches)) }
}

/// Whether the pattern says at which times of the day it comes. Seconds do not count: they are ours, not cron's.
fn is_fixed(cron: &Cron) -> bool {
    !cron.pattern.minutes.from_wildcard && !cron.pattern.hours.from_wildcard
}

/// The next of a pattern's fixed times. Each is taken at one moment, and the later one never at an earlier moment: the first time of the
/// wall that is behind what was taken is the next one.
fn fixed(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Result<Timestamp, CronFault> {
    let now = zone.to_offset(after);
    let local = now.to_datetime(after);
    let mut from = second_after(local)?;
    if let AmbiguousOffset::Fold { before, after: later } = zone.to_ambiguous_timestamp(local).offset()
        && now == later
    {
        // The second time round: all of it was taken in the first.
        from = before.to_datetime(set_back_at(zone, before, after)?);
    }
    let wall = first_from(cron, from)?;
    let moment = match zone.to_ambiguous_timestamp(wall).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(wall),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(wall),
        AmbiguousOffset::Gap { after: later, .. } => return set_forward_at(zone, later, wall),
    };
    moment.map_err(|_| CronFault::Never)
}

/// The latest moment up to `until` at which the clocks left `before`.
fn set_back_at(zone: &TimeZone, before: Offset, until: Timestamp) -> Result<Timestamp, CronFault> {
    let behind = until.checked_add(1.nanosecond()).map_err(|_| CronFault::Never)?;
    let left = |at: &Timestamp| at.checked_sub(1.nanosecond()).is_ok_and(|just| zone.to_offset(just) == before);
    zone.preceding(behind).map(|change| change.timestamp()).find(left).ok_or(CronFault::Never)
}

/// The end of the gap that `wall` lies in, from which on `later` is in force.
fn set_forward_at(zone: &TimeZone, later: Offset, wall: DateTime) -> Result<Timestamp, CronFault> {
    let ahead = later.to_timestamp(wall).map_err(|_| CronFault::Never)?;
    let change = zone.following(ahead).find(|change| change.offset() == later).ok_or(CronFault::Never)?;
    Ok(change.timestamp())
}

/// The next moment at which the wall shows a time that fits: each stretch between two changes of the clocks is searched by itself.
fn by_the_clock(
    cron: &Cron,
    zone: &TimeZone,
    after: Timestamp,
    last: Timestamp,
) -> Result<(Timestamp, u32), CronFault> {
    let mut offset = zone.to_offset(after);
    let mut from = second_after(offset.to_datetime(after))?;
    let mut changes = zone.following(after);
    for searches in 1.. {
        let moment = offset.to_timestamp(first_from(cron, from)?).map_err(|_| CronFault::Never)?;
        let Some(change) = changes.next().filter(|change| change.timestamp() <= moment) else {
            return Ok((moment, searches));
        };
        if change.timestamp() > last {
            break;
        }
        offset = change.offset();
        from = offset.to_datetime(change.timestamp());
    }
    Err(CronFault::Never)
}

/// The first time of the wall from `from` on that fits the pattern.
fn first_from(cron: &Cron, from: DateTime) -> Result<DateTime, CronFault> {
    cron.find_next_occurrence(&from, true).map_err(|_| CronFault::Never)
}

/// The whole second that comes next.
fn second_after(at: DateTime) -> Result<DateTime, CronFault> {
    let whole = at.with().subsec_nanosecond(0).build().map_err(|_| CronFault::Never)?;
    whole.checked_add(1.second()).map_err(|_| CronFault::Never)
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
        // About a millisecond each in release builds; before, one of them took seconds there, and many in this build.
        let took = begin.elapsed();
        assert!(took < std::time::Duration::from_secs(5), "{took:?}");
    }

    /// What comes next and next, from a time before a change of the clocks on. 2027: Berlin 28 March and 31 October at 01:00Z, New York
    /// 14 March 07:00Z and 7 November 06:00Z, Santiago forward 5 September 04:00Z (at midnight) and back 4 April 03:00Z, Lord Howe (30
    /// minutes) forward 2 October 15:30Z and back 3 April 15:00Z, Cairo forward 29 April 22:00Z (at midnight) and back 28 October 21:00Z,
    /// Troll (2 hours) 28 March and 31 October at 01:00Z.
    const CHANGES: &[(&str, &str, &str, &[&str])] = &[
        // Forward: fixed times of the gap are taken at its end, once.
        ("Europe/Berlin", "0 2,14 * * *", "03-27T20:00", &["03-28T01:00", "03-28T12:00", "03-29T00:00"]),
        ("Europe/Berlin", "0,30 2 * * *", "03-27T20:00", &["03-28T01:00", "03-29T00:00", "03-29T00:30"]),
        ("Europe/Berlin", "15 1-3 * * *", "03-27T20:00", &["03-28T00:15", "03-28T01:00", "03-28T01:15", "03-28T23:15"]),
        ("Europe/Berlin", "0-45/15 2 * * *", "03-27T20:00", &["03-28T01:00", "03-29T00:00", "03-29T00:15"]),
        ("Europe/Berlin", "30 2-2 * * SUN", "03-27T20:00", &["03-28T01:00", "04-04T00:30"]),
        ("Europe/Berlin", "* 30 2 * * *", "03-28T00:00", &["03-28T01:00", "03-29T00:30"]),
        ("America/New_York", "0 2,14 * * *", "03-14T00:00", &["03-14T07:00", "03-14T18:00", "03-15T06:00"]),
        ("America/New_York", "0-30/15 1-3/2 * * *", "03-14T06:10", &["03-14T06:15", "03-14T06:30", "03-14T07:00"]),
        ("America/Santiago", "0,30 0 * * *", "09-05T00:00", &["09-05T04:00", "09-06T03:00", "09-06T03:30"]),
        ("America/Santiago", "0 0-12/6 * * *", "09-05T00:00", &["09-05T04:00", "09-05T09:00", "09-05T15:00"]),
        ("Australia/Lord_Howe", "10,20,40 2 * * *", "10-02T12:00", &["10-02T15:30", "10-02T15:40", "10-03T15:10"]),
        ("Australia/Lord_Howe", "15 1-3 * * *", "10-02T14:00", &["10-02T14:45", "10-02T15:30", "10-02T16:15"]),
        ("Africa/Cairo", "0,30 0 * * *", "04-29T12:00", &["04-29T22:00", "04-30T21:00", "04-30T21:30"]),
        ("Africa/Cairo", "30 0-1 * * FRI", "04-29T12:00", &["04-29T22:00", "04-29T22:30", "05-06T21:30"]),
        ("Antarctica/Troll", "0 1,2,3 * * *", "03-28T00:00", &["03-28T01:00", "03-28T23:00", "03-29T00:00"]),
        ("Antarctica/Troll", "30 0-3 * * *", "03-28T00:00", &["03-28T00:30", "03-28T01:00", "03-28T01:30"]),
        // Forward: what goes by the clock leaves the gap out.
        ("Europe/Berlin", "*/30 2 * * *", "03-27T20:00", &["03-29T00:00", "03-29T00:30"]),
        ("Europe/Berlin", "30 */2 * * *", "03-28T00:00", &["03-28T02:30", "03-28T04:30"]),
        ("America/New_York", "*/30 * * * *", "03-14T06:15", &["03-14T06:30", "03-14T07:00", "03-14T07:30"]),
        ("America/Santiago", "0 * * * *", "09-05T02:30", &["09-05T03:00", "09-05T04:00", "09-05T05:00"]),
        ("Australia/Lord_Howe", "*/20 * * * *", "10-02T15:00", &["10-02T15:10", "10-02T15:40", "10-02T16:00"]),
        ("Africa/Cairo", "*/20 0 * * *", "04-29T12:00", &["04-30T21:00", "04-30T21:20"]),
        ("Antarctica/Troll", "0 */2 * * *", "03-28T00:00", &["03-28T02:00", "03-28T04:00"]),
        // Back: fixed times are taken once, the first time.
        ("Europe/Berlin", "0 2,14 * * *", "10-30T20:00", &["10-31T00:00", "10-31T13:00", "11-01T01:00"]),
        ("Europe/Berlin", "0,30 2 * * *", "10-30T20:00", &["10-31T00:00", "10-31T00:30", "11-01T01:00"]),
        ("Europe/Berlin", "15 1-3 * * *", "10-30T20:00", &["10-30T23:15", "10-31T00:15", "10-31T02:15"]),
        ("Europe/Berlin", "0,30 2,3 * * *", "10-31T01:15", &["10-31T02:00", "10-31T02:30", "11-01T01:00"]),
        ("Europe/Berlin", "* 30 2 * * *", "10-31T00:30:58", &["10-31T00:30:59", "11-01T01:30"]),
        ("America/New_York", "0-59/20 1 * * *", "11-07T05:30", &["11-07T05:40", "11-08T06:00", "11-08T06:20"]),
        ("America/Santiago", "30 22,23 * * *", "04-03T20:00", &["04-04T01:30", "04-04T02:30", "04-05T02:30"]),
        ("Australia/Lord_Howe", "15,45 1 * * *", "04-03T12:00", &["04-03T14:15", "04-03T14:45", "04-04T14:45"]),
        ("Africa/Cairo", "0,30 23 * * *", "10-28T12:00", &["10-28T20:00", "10-28T20:30", "10-29T21:00"]),
        ("Antarctica/Troll", "30 0-3 * * *", "10-30T23:00", &["10-30T23:30", "10-31T00:30", "10-31T03:30"]),
        // Back: what goes by the clock comes twice.
        (
            "Europe/Berlin",
            "*/30 2 * * *",
            "10-30T20:00",
            &["10-31T00:00", "10-31T00:30", "10-31T01:00", "10-31T01:30", "11-01T01:00"],
        ),
        ("Europe/Berlin", "0 */2 * * *", "10-30T22:30", &["10-31T00:00", "10-31T01:00", "10-31T03:00"]),
        ("America/New_York", "30 * * * *", "11-07T05:00", &["11-07T05:30", "11-07T06:30", "11-07T07:30"]),
        (
            "America/Santiago",
            "*/40 23 * * *",
            "04-04T01:00",
            &["04-04T02:00", "04-04T02:40", "04-04T03:00", "04-04T03:40", "04-05T03:00"],
        ),
        (
            "Australia/Lord_Howe",
            "*/20 1 * * *",
            "04-03T14:00",
            &["04-03T14:20", "04-03T14:40", "04-03T15:10", "04-04T14:30"],
        ),
        ("Africa/Cairo", "0 * * * *", "10-28T19:30", &["10-28T20:00", "10-28T21:00", "10-28T22:00"]),
        ("Antarctica/Troll", "0 */2 * * *", "10-30T22:30", &["10-31T00:00", "10-31T02:00", "10-31T04:00"]),
    ];

    #[test]
    fn lists_ranges_and_steps_are_taken_over_each_change_of_the_clocks() {
        for (zone, pattern, begin, expected) in CHANGES {
            let whole = |text: &str| format!("2027-{text}{}Z", if text.len() > 11 { "" } else { ":00" });
            let mut last = whole(begin);
            for then in *expected {
                let next = next_text(pattern, zone, &last).expect("a next time");
                assert_eq!(next, whole(then), "{zone}: `{pattern}` after {last}");
                last = next;
            }
        }
    }

    #[test]
    fn a_time_within_a_second_is_followed_by_the_next_one() {
        let at = |text: &str| next_text("0,30 2 * * *", "Europe/Berlin", text).expect("a next time");
        assert_eq!(at("2027-03-28T00:59:59.999Z"), "2027-03-28T01:00:00Z");
        assert_eq!(at("2027-03-28T01:00:00.001Z"), "2027-03-29T00:00:00Z");
        assert_eq!(at("2027-10-31T00:59:59.999Z"), "2027-11-01T01:00:00Z");
        assert_eq!(at("2027-10-31T01:00:00Z"), "2027-11-01T01:00:00Z");
    }

    #[test]
    fn a_gap_that_ends_on_the_next_day_loses_nothing() {
        // Scoresbysund sets forward from 23:00 on Saturday to midnight.
        let next = next_text("30 22,23 * * SAT", "America/Scoresbysund", "2027-03-28T00:35:00Z");
        assert_eq!(next.as_deref(), Ok("2027-03-28T01:00:00Z"));
    }

    #[test]
    fn a_step_beyond_its_field_is_refused_where_it_is_given() {
        let after = 1_795_000_000_000;
        for (bad, field) in [
            ("*/70 * * * *", "minute `*/70`"),
            ("0-30/61 * * * *", "minute `0-30/61`"),
            ("*/61 * * * * *", "second `*/61`"),
            ("0 */25 * * *", "hour `*/25`"),
            ("0 0 */32 * *", "day of month `*/32`"),
            ("0 0 1 1-12/13 *", "month `1-12/13`"),
            ("0 0 * * 1,*/8", "day of week `*/8`"),
        ] {
            let fault = check(bad, "UTC", after).expect_err(bad);
            assert!(matches!(&fault, CronFault::Pattern(why) if why.contains(field)), "{bad}: {fault}");
            // Those that are stored go on.
            assert!(next(bad, "UTC", after).is_ok(), "{bad}");
        }
        for good in ["*/60 * * * *", "0 */24 * * *", "0 0 */31 * *", "0 0 1 */12 *", "0 0 * * */7", "@hourly"] {
            assert_eq!(check(good, "UTC", after), Ok(()), "{good}");
        }
    }

    #[test]
    fn a_search_through_changes_of_the_clocks_is_counted() {
        let searches = |pattern, zone, after: &str| {
            let after: Timestamp = after.parse().expect("a time");
            let after = u64::try_from(after.as_millisecond()).expect("after 1970");
            reckon(&parse(pattern).expect("a pattern"), zone, after).map(|(_, searches)| searches)
        };
        // 29 March is the day of the gap in 2026 and 2037 only.
        assert_eq!(searches("*/7 * 2 29 3 *", "Europe/Berlin", "2026-03-28T12:00:00Z"), Ok(4));
        assert_eq!(searches("0 3 * * MON", "Europe/Berlin", "2026-03-28T12:00:00Z"), Ok(1));
        // Morocco changes its clocks four times in some years.
        let many = searches("* 3 29 2 *", "Africa/Casablanca", "2028-03-01T00:00:00Z").expect("a time");
        assert!(many < 20, "{many}");
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
