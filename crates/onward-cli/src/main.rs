//! The `onward` command.

fn main() {}
