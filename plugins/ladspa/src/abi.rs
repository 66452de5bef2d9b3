//! LADSPA 1.1, as in its `ladspa.h`. The crate `ladspa` is unmaintained since 2017.

use std::ffi::{c_char, c_int, c_ulong, c_void};

/// Handle of a running plugin.
pub type Handle = *mut c_void;

/// Directions and kinds of ports.
pub const INPUT: c_int = 0x1;
pub const OUTPUT: c_int = 0x2;
pub const CONTROL: c_int = 0x4;
pub const AUDIO: c_int = 0x8;

/// Hints about the values of a port.
pub const BOUNDED: c_int = 0x1 | 0x2;
pub const TOGGLED: c_int = 0x4;
pub const INTEGER: c_int = 0x20;
pub const DEFAULT_LOW: c_int = 0x80;
pub const DEFAULT_MIDDLE: c_int = 0xc0;
pub const DEFAULT_0: c_int = 0x200;
pub const DEFAULT_1: c_int = 0x240;

/// The plugin is suitable for hard real-time use.
pub const HARD_RT_CAPABLE: c_int = 0x4;

/// The range of a port.
#[repr(C)]
pub struct PortRangeHint {
    pub hints: c_int,
    pub lower: f32,
    pub upper: f32,
}

/// Descriptor of a plugin.
#[repr(C)]
pub struct Descriptor {
    pub unique_id: c_ulong,
    pub label: *const c_char,
    pub properties: c_int,
    pub name: *const c_char,
    pub maker: *const c_char,
    pub copyright: *const c_char,
    pub port_count: c_ulong,
    pub port_descriptors: *const c_int,
    pub port_names: *const *const c_char,
    pub port_range_hints: *const PortRangeHint,
    pub implementation_data: *mut c_void,
    pub instantiate: unsafe extern "C" fn(*const Descriptor, c_ulong) -> Handle,
    pub connect_port: unsafe extern "C" fn(Handle, c_ulong, *mut f32),
    pub activate: Option<unsafe extern "C" fn(Handle)>,
    pub run: unsafe extern "C" fn(Handle, c_ulong),
    pub run_adding: Option<unsafe extern "C" fn(Handle, c_ulong)>,
    pub set_run_adding_gain: Option<unsafe extern "C" fn(Handle, f32)>,
    pub deactivate: Option<unsafe extern "C" fn(Handle)>,
    pub cleanup: unsafe extern "C" fn(Handle),
}

// SAFETY: a descriptor is never written to, and everything it points to is constant.
unsafe impl Sync for Descriptor {}
