//! The client of a running Onward process: implements the engine over its socket.
