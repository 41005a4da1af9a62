//! The machine by its public face: commands in, replies and rows out.

mod apply_bounds;
mod codec_round_trips;
mod command_steps;
mod dearest;
mod document_criteria;
mod document_patch;
mod document_support;
mod document_values;
mod lock_keys;
mod machine_access;
mod machine_collections;
mod machine_golden;
mod machine_level;
mod machine_members;
mod machine_properties;
mod machine_quotas;
mod machine_support;
mod machine_tasks;
mod memory_state;
mod range_steps;
mod rules_conform;
mod rules_read;
mod rules_select;
mod session_ends;
mod wall_clock;

/// Some tests assert how much memory they take.
#[global_allocator]
static ALLOCATOR: quorate_crossing::memory::Counting = quorate_crossing::memory::Counting;
