//! Which start of which process: naming it, and telling whether it is dead.

use onward_core::{Env, ProcessId};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
use std::{fs, os::fd::OwnedFd, sync::OnceLock};

/// This start of this process: `host/pid/start-ticks/random`.
///
/// `host` names the machine, its boot and the space of its process numbers, so that only those numbers are compared
/// that mean the same. The answer is the same for as long as the process lives.
pub fn this_process(env: &dyn Env) -> ProcessId {
    static THIS: OnceLock<ProcessId> = OnceLock::new();
    THIS.get_or_init(|| {
        let pid = std::process::id();
        let ticks = start_ticks(pid).unwrap_or(0);
        ProcessId(format!("{}/{pid}/{ticks}/{:016x}", here(), env.random()).into())
    })
    .clone()
}

/// What is known of the life of a process.
#[derive(Debug)]
pub(crate) enum Life {
    /// It is gone.
    Dead,
    /// It lives; the handle becomes readable when it is gone.
    Alive(OwnedFd),
    /// It can't be told from here: another machine or container, or no such means on this system.
    Unknown,
}

/// Whether a process that is named as [`this_process`] names them lives here.
pub(crate) fn life(process: &ProcessId) -> Life {
    match parse(process) {
        Some(named) if named.host == here() => life_of(named.pid, named.ticks),
        _ => Life::Unknown,
    }
}

/// The number of a process that [`life`] can't judge by its name, as the kernel tells it of a connection's other end.
pub(crate) fn life_of_peer(pid: i32) -> Life {
    match u32::try_from(pid).ok().filter(|pid| *pid != 0).and_then(|pid| Some((pid, start_ticks(pid)?))) {
        Some((pid, ticks)) => life_of(pid, ticks),
        None => Life::Unknown,
    }
}

/// The process number in a name, where it is one of [`this_process`].
pub(crate) fn pid_of(process: &ProcessId) -> Option<u32> {
    parse(process).map(|named| named.pid)
}

struct Named<'a> {
    host: &'a str,
    pid: u32,
    ticks: u64,
}

fn parse(process: &ProcessId) -> Option<Named<'_>> {
    let mut parts = process.0.split('/');
    let (host, pid, ticks, _random) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    Some(Named { host, pid: pid.parse().ok()?, ticks: ticks.parse().ok()? })
}

fn life_of(pid: u32, ticks: u64) -> Life {
    let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Life::Unknown };
    // The handle first: what it stands for can't change any more while the start time is compared.
    let handle = match pidfd_open(number, PidfdFlags::NONBLOCK) {
        Ok(handle) => handle,
        Err(rustix::io::Errno::SRCH) => return Life::Dead,
        Err(_) => return Life::Unknown,
    };
    match start_ticks(pid) {
        Some(now) if now == ticks && !has_ended(&handle) => Life::Alive(handle),
        _ => Life::Dead,
    }
}

/// A zombie has ended too: nobody runs in it any more.
fn has_ended(handle: &OwnedFd) -> bool {
    let mut asked = [PollFd::new(handle, PollFlags::IN)];
    poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

/// When a process began, in clock ticks since boot: the 22nd field of its `stat`, whose 2nd may hold anything.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// This machine, this boot, this space of process numbers. Has no `/` and no control characters.
fn here() -> &'static str {
    static HERE: OnceLock<String> = OnceLock::new();
    HERE.get_or_init(|| {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let boot: String = read("/proc/sys/kernel/random/boot_id").chars().take(8).collect();
        let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let digits: String = space.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let host: String = name.chars().filter(|c| !c.is_control() && *c != '/').take(64).collect();
        format!("{host}~{boot}~{digits}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use onward_env::SystemEnv;
    use onward_proves::proves;
    use std::process::Command;

    fn named(pid: u32, ticks: u64) -> ProcessId {
        ProcessId(format!("{}/{pid}/{ticks}/0", here()).into())
    }

    #[test]
    #[proves("T7")]
    fn a_process_is_told_from_a_later_one_with_its_number() {
        let me = this_process(&SystemEnv);
        assert_eq!(me, this_process(&SystemEnv));
        assert!(matches!(life(&me), Life::Alive(_)));
        let ticks = start_ticks(std::process::id()).unwrap();
        assert!(matches!(life(&named(std::process::id(), ticks + 1)), Life::Dead));
    }

    #[test]
    #[proves("T8")]
    fn a_killed_process_is_dead_before_and_after_its_parent_looks() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let name = named(child.id(), start_ticks(child.id()).unwrap());
        assert!(matches!(life(&name), Life::Alive(_)));
        child.kill().unwrap();
        // The parent has not looked yet, so it is a zombie as soon as it has ended: the handle tells when.
        if let Life::Alive(handle) = life(&name) {
            poll(&mut [PollFd::new(&handle, PollFlags::IN)], None).unwrap();
        }
        assert!(matches!(life(&name), Life::Dead));
        child.wait().unwrap();
        assert!(matches!(life(&name), Life::Dead));
    }

    #[test]
    fn what_is_elsewhere_or_badly_named_is_never_called_dead() {
        for name in ["", "x", "a/b/c/d", "other~1~2/1/1/0", "other/1/1/1/1"] {
            assert!(matches!(life(&ProcessId(name.into())), Life::Unknown), "{name}");
        }
    }
}
