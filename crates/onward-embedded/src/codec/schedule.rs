//! The binary form of schedules.

use super::wire::{Decoded, Input, Malformed, Wire, wire_enum, wire_struct};
use onward_core::{CatchUp, Overlap, Schedule, ScheduleWhen};

wire_enum!(Overlap { Allow = 0, Skip = 1 });
wire_struct!(Schedule { queue, template, when, catch_up, overlap, until });

impl Wire for ScheduleWhen {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Cron { line, zone } => (0u8, (line.clone(), zone.clone())).put(out),
            Self::Every { every_ms, first } => (1u8, (*every_ms, *first)).put(out),
        }
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        match input.byte()? {
            0 => Ok(Self::Cron { line: Wire::get(input)?, zone: Wire::get(input)? }),
            1 => Ok(Self::Every { every_ms: Wire::get(input)?, first: Wire::get(input)? }),
            _ => Err(Malformed("an unknown kind of ticks")),
        }
    }
}

impl Wire for CatchUp {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Skip => out.push(0),
            Self::Coalesce => out.push(1),
            Self::Backfill(most) => (2u8, *most).put(out),
        }
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        match input.byte()? {
            0 => Ok(Self::Skip),
            1 => Ok(Self::Coalesce),
            2 => Wire::get(input).map(Self::Backfill),
            _ => Err(Malformed("an unknown rule for missed ticks")),
        }
    }
}
