//! Asynchronous work that doesn't get lost: what users import.
