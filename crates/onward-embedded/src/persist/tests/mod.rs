//! The store, its snapshots and its space, on simulated disks, at every point where the power may fail.

mod damage;
mod desk;
mod events;
mod faults;
mod power;
mod promises;
mod restart;
mod schedules;
mod sim;
mod space;
mod streams;
