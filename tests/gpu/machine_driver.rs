//! A CUDA driver whose GPU is the SASS simulator, for testing the engine `gpu` without a GPU.
//!
//! It exports the functions that `src/gpu/api.rs` loads. GPU memory is memory of this process; a
//! launch finds the parameters that are addresses of allocations and passes those to the simulator
//! as buffers. There is one context and one GPU of compute capability 9.0. A kernel takes one
//! millisecond per million instructions, whatever they are. `SASSAFRAS_DRIVER_FLIPS` simulates a
//! faulty GPU by flipping a bit of the last buffer.

use sassafras::sim::launch::{ArgValue, Within};
use sassafras::sim::run::{Shape, run};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::Mutex;

type Handle = *mut c_void;

const BAD_VALUE: c_int = 1;
const BAD_IMAGE: c_int = 200;
const NOT_FOUND: c_int = 500;
const LAUNCH_FAILED: c_int = 719;
/// Address of the first GPU allocation; the next ones follow.
const MEMORY: u64 = 0x7000_0000_0000;

#[derive(Default)]
struct State {
    memory: BTreeMap<u64, Vec<u8>>,
    /// Modules by handle.
    modules: Vec<Option<Vec<u8>>>,
    /// Functions by handle: module and name.
    functions: Vec<(usize, String)>,
    /// Duration of the last launch in milliseconds.
    time: f32,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

fn with<T>(act: impl FnOnce(&mut State) -> T) -> T {
    let mut state = STATE.lock().unwrap();
    act(state.get_or_insert_default())
}

/// Handles start at 1, because the null handle is invalid.
fn handle(number: usize) -> Handle {
    (number + 1) as Handle
}

macro_rules! exported {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) $body:block)*) => {
        $(
            $(#[$doc])*
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, reason = "the driver's names")]
            unsafe extern "C" fn $name($($arg: $ty),*) -> c_int $body
        )*
    };
}

exported! {
    fn cuInit(_flags: c_uint) { 0 }
    fn cuDriverGetVersion(version: *mut c_int) {
        unsafe { *version = 13_000 };
        0
    }
    fn cuDeviceGet(device: *mut c_int, number: c_int) {
        unsafe { *device = number };
        if number == 0 { 0 } else { BAD_VALUE }
    }
    fn cuDeviceGetName(name: *mut c_char, length: c_int, _device: c_int) {
        let text = c"SASS simulator".to_bytes_with_nul();
        if (length as usize) < text.len() {
            return BAD_VALUE;
        }
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), name.cast(), text.len()) };
        0
    }
    fn cuDeviceGetAttribute(value: *mut c_int, which: c_int, _device: c_int) {
        unsafe { *value = if which == 75 { 9 } else { 0 } };
        0
    }
    fn cuDevicePrimaryCtxRetain(context: *mut Handle, _device: c_int) {
        unsafe { *context = handle(0) };
        0
    }
    fn cuDevicePrimaryCtxRelease_v2(_device: c_int) { 0 }
    fn cuCtxSetCurrent(_context: Handle) { 0 }
    fn cuCtxSynchronize() { 0 }
    fn cuModuleLoadData(module: *mut Handle, image: *const c_void) {
        let Some(bytes) = (unsafe { elf(image.cast()) }) else { return BAD_IMAGE };
        if sassafras::cubin::read(&bytes).is_err() {
            return BAD_IMAGE;
        }
        let number = with(|s| {
            s.modules.push(Some(bytes));
            s.modules.len() - 1
        });
        unsafe { *module = handle(number) };
        0
    }
    fn cuModuleUnload(module: Handle) {
        with(|s| s.modules[module as usize - 1] = None);
        0
    }
    fn cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) {
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
        let module = module as usize - 1;
        let number = with(|s| {
            let cubin = sassafras::cubin::read(s.modules[module].as_ref()?).ok()?;
            cubin.function(&name)?;
            s.functions.push((module, name.clone()));
            Some(s.functions.len() - 1)
        });
        let Some(number) = number else { return NOT_FOUND };
        unsafe { *function = handle(number) };
        0
    }
    fn cuFuncSetAttribute(_function: Handle, _which: c_int, _value: c_int) { 0 }
    fn cuMemAlloc_v2(at: *mut u64, bytes: usize) {
        let address = with(|s| {
            let end = s.memory.last_key_value().map_or(MEMORY, |(at, bytes)| at + bytes.len() as u64);
            let address = end.next_multiple_of(256) + 256;
            s.memory.insert(address, vec![0; bytes]);
            address
        });
        unsafe { *at = address };
        0
    }
    fn cuMemFree_v2(at: u64) {
        if with(|s| s.memory.remove(&at)).is_some() { 0 } else { BAD_VALUE }
    }
    fn cuMemcpyHtoD_v2(at: u64, from: *const c_void, bytes: usize) {
        let from = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) };
        with(|s| match s.memory.get_mut(&at).filter(|m| m.len() >= bytes) {
            Some(memory) => {
                memory[..bytes].copy_from_slice(from);
                0
            }
            None => BAD_VALUE,
        })
    }
    fn cuMemcpyDtoH_v2(to: *mut c_void, at: u64, bytes: usize) {
        let to = unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), bytes) };
        with(|s| match s.memory.get(&at).filter(|m| m.len() >= bytes) {
            Some(memory) => {
                to.copy_from_slice(&memory[..bytes]);
                0
            }
            None => BAD_VALUE,
        })
    }
    fn cuLaunchKernel(
        function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, smem: c_uint,
        _stream: Handle, parameters: *mut *mut c_void, _extra: *mut *mut c_void
    ) {
        let shape = Shape { grid: [gx, gy, gz], block: [bx, by, bz], smem };
        with(|s| unsafe { launch(s, function as usize - 1, shape, parameters) })
    }
    fn cuEventCreate(event: *mut Handle, _flags: c_uint) {
        unsafe { *event = handle(0) };
        0
    }
    fn cuEventDestroy_v2(_event: Handle) { 0 }
    fn cuEventRecord(_event: Handle, _stream: Handle) { 0 }
    fn cuEventElapsedTime(time: *mut f32, _before: Handle, _after: Handle) {
        unsafe { *time = with(|s| s.time) };
        0
    }
    fn cuGetErrorName(code: c_int, text: *mut *const c_char) {
        let name = match code {
            BAD_VALUE => c"CUDA_ERROR_INVALID_VALUE",
            BAD_IMAGE => c"CUDA_ERROR_INVALID_IMAGE",
            NOT_FOUND => c"CUDA_ERROR_NOT_FOUND",
            LAUNCH_FAILED => c"CUDA_ERROR_LAUNCH_FAILED",
            _ => return BAD_VALUE,
        };
        unsafe { *text = name.as_ptr() };
        0
    }
    fn cuGetErrorString(code: c_int, text: *mut *const c_char) {
        unsafe { cuGetErrorName(code, text) }
    }
}

/// The bytes of an ELF file, up to the end of its section headers (which are last in our files and
/// ptxas's) or of the program headers after them.
unsafe fn elf(image: *const u8) -> Option<Vec<u8>> {
    let header = unsafe { std::slice::from_raw_parts(image, 64) };
    let number = |at: usize, size: usize| (0..size).fold(0u64, |n, i| n | u64::from(header[at + i]) << (8 * i));
    if !header.starts_with(b"\x7fELF") {
        return None;
    }
    let sections = number(0x28, 8) + number(0x3a, 2) * number(0x3c, 2);
    let segments = number(0x20, 8) + number(0x36, 2) * number(0x38, 2);
    let length = sections.max(segments) as usize;
    Some(unsafe { std::slice::from_raw_parts(image, length) }.to_vec())
}

/// A parameter that is not an address; allocations that it points to become memory before it.
fn structure(s: &State, bytes: Vec<u8>, args: &mut Vec<ArgValue>, places: &mut Vec<Option<u64>>) -> ArgValue {
    let mut addresses = Vec::new();
    for (i, slot) in bytes.as_chunks::<8>().0.iter().enumerate().filter(|_| bytes.len() > 8) {
        let address = u64::from_le_bytes(*slot);
        let place = s.memory.range(..=address).next_back().filter(|(at, m)| address < **at + m.len() as u64);
        let Some((base, memory)) = place else { continue };
        let arg = places.iter().position(|place| place == &Some(*base)).unwrap_or(args.len());
        if arg == args.len() {
            args.push(ArgValue::Memory { bytes: memory.clone(), writable: true });
            places.push(Some(*base));
        }
        addresses.push(Within { at: 8 * i, arg, offset: address - base });
    }
    if addresses.is_empty() { ArgValue::Scalar { bytes } } else { ArgValue::Struct { bytes, addresses } }
}

/// Runs a function; parameters that are addresses of allocations become buffers.
unsafe fn launch(s: &mut State, function: usize, shape: Shape, parameters: *mut *mut c_void) -> c_int {
    let (module, name) = s.functions[function].clone();
    let Some(bytes) = s.modules[module].clone() else { return BAD_VALUE };
    let Ok(cubin) = sassafras::cubin::read(&bytes) else { return BAD_IMAGE };
    let Some(kernel) = cubin.function(&name) else { return NOT_FOUND };
    let (mut args, mut places): (Vec<ArgValue>, Vec<Option<u64>>) = (Vec::new(), Vec::new());
    for (i, param) in kernel.params.iter().enumerate() {
        let at = unsafe { *parameters.add(i) }.cast::<u8>();
        let bytes = unsafe { std::slice::from_raw_parts(at, param.size.into()) }.to_vec();
        let address = <[u8; 8]>::try_from(bytes.as_slice()).map_or(0, u64::from_le_bytes);
        let place = s.memory.range(..=address).next_back().filter(|(at, m)| address < **at + m.len() as u64);
        let place = place.map(|(at, memory)| (*at, memory.clone()));
        let (arg, place) = match place {
            None => (structure(s, bytes, &mut args, &mut places), None),
            Some((at, memory)) if at == address && !places.contains(&Some(at)) => {
                (ArgValue::Buffer { bytes: memory, writable: true }, Some(at))
            }
            Some((at, _)) => match places.iter().position(|place| *place == Some(at)) {
                Some(arg) => (ArgValue::Within { arg, offset: address - at }, None),
                None => return BAD_VALUE,
            },
        };
        args.push(arg);
        places.push(place);
    }
    match run(&bytes, &name, shape, &mut args) {
        Ok(stats) => s.time = stats.instructions as f32 / 1e6,
        Err(fault) => {
            eprintln!("machine: {fault}");
            return LAUNCH_FAILED;
        }
    }
    let last = args.iter_mut().rev().find_map(ArgValue::buffer_mut);
    if let Some(byte) =
        last.and_then(|bytes| bytes.first_mut()).filter(|_| std::env::var_os("SASSAFRAS_DRIVER_FLIPS").is_some())
    {
        *byte ^= 0x10;
    }
    for (arg, place) in args.iter().zip(places) {
        if let (Some((bytes, _)), Some(at)) = (arg.buffer(), place) {
            s.memory.insert(at, bytes.to_vec());
        }
    }
    0
}
