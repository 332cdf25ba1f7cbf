//! The CUDA driver functions that this crate calls, with the names and types of the public header
//! `cuda.h`.
//!
//! Each function is a method that returns the driver's error text on failure. The library stays
//! loaded while its functions can be called, and the driver keeps no pointer of the caller after a
//! call.

use crate::sim::run::Shape;
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr::null_mut;

/// A module, function, stream, event or context of the driver.
pub type Handle = *mut c_void;

/// Declares the function table: field, symbol, argument types. Each function returns a CUresult.
macro_rules! functions {
    ($($field:ident $symbol:literal ($($arg:ty),*);)*) => {
        struct Functions {
            $($field: unsafe extern "C" fn($($arg),*) -> c_int,)*
        }

        impl Functions {
            fn of(library: &Library) -> Result<Functions, libloading::Error> {
                // SAFETY: the types are those of the public header for these names.
                unsafe { Ok(Functions { $($field: *library.get($symbol)?,)* }) }
            }
        }
    };
}

functions! {
    init b"cuInit\0" (c_uint);
    version b"cuDriverGetVersion\0" (*mut c_int);
    device b"cuDeviceGet\0" (*mut c_int, c_int);
    name b"cuDeviceGetName\0" (*mut c_char, c_int, c_int);
    attribute b"cuDeviceGetAttribute\0" (*mut c_int, c_int, c_int);
    retain b"cuDevicePrimaryCtxRetain\0" (*mut Handle, c_int);
    release b"cuDevicePrimaryCtxRelease_v2\0" (c_int);
    set_current b"cuCtxSetCurrent\0" (Handle);
    synchronize b"cuCtxSynchronize\0" ();
    load_module b"cuModuleLoadData\0" (*mut Handle, *const c_void);
    unload b"cuModuleUnload\0" (Handle);
    function b"cuModuleGetFunction\0" (*mut Handle, Handle, *const c_char);
    set_attribute b"cuFuncSetAttribute\0" (Handle, c_int, c_int);
    allocate b"cuMemAlloc_v2\0" (*mut u64, usize);
    free b"cuMemFree_v2\0" (u64);
    put_at b"cuMemcpyHtoD_v2\0" (u64, *const c_void, usize);
    take_from b"cuMemcpyDtoH_v2\0" (*mut c_void, u64, usize);
    launch b"cuLaunchKernel\0" (
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void
    );
    event b"cuEventCreate\0" (*mut Handle, c_uint);
    drop_event b"cuEventDestroy_v2\0" (Handle);
    record b"cuEventRecord\0" (Handle, Handle);
    elapsed b"cuEventElapsedTime\0" (*mut f32, Handle, Handle);
    error_name b"cuGetErrorName\0" (c_int, *mut *const c_char);
    error_text b"cuGetErrorString\0" (c_int, *mut *const c_char);
}

/// The loaded driver.
pub struct Api {
    functions: Functions,
    /// The device whose primary context is retained.
    entered: std::cell::Cell<Option<c_int>>,
    _library: Library,
}

impl Api {
    /// Loads the driver library with this name or path.
    ///
    /// # Errors
    ///
    /// A library that cannot be loaded or lacks a function.
    pub fn load(library: &Path) -> Result<Api, String> {
        // SAFETY: loading runs the library's initialisers; it is the system's driver, or one that
        // the caller names.
        let loaded = unsafe { Library::new(library) }.map_err(|error| error.to_string())?;
        let functions = Functions::of(&loaded).map_err(|error| format!("{}: {error}", library.display()))?;
        Ok(Api { functions, entered: Default::default(), _library: loaded })
    }

    /// Converts a result code; `what` names the call.
    fn said(&self, what: &str, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        let text = |ask: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int| {
            let mut text: *const c_char = std::ptr::null();
            // SAFETY: the driver leaves the pointer alone or sets it to a string that lives as long
            // as the driver.
            let known = unsafe { ask(code, &mut text) } == 0 && !text.is_null();
            // SAFETY: as above; the string ends with a NUL.
            if known { unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned() } else { String::new() }
        };
        let (name, message) = (text(self.functions.error_name), text(self.functions.error_text));
        Err(format!("{what}: {name} ({code}): {message}"))
    }

    /// `cuInit`.
    pub fn init(&self) -> Result<(), String> {
        // SAFETY: takes no pointer.
        self.said("cuInit", unsafe { (self.functions.init)(0) })
    }

    /// `cuDriverGetVersion`: 1000 × major + 10 × minor.
    pub fn version(&self) -> Result<u32, String> {
        let mut version = 0;
        // SAFETY: writes one int.
        self.said("cuDriverGetVersion", unsafe { (self.functions.version)(&mut version) })?;
        Ok(version as u32)
    }

    /// `cuDeviceGet`: the device with that number.
    pub fn device(&self, number: c_int) -> Result<c_int, String> {
        let mut device = 0;
        // SAFETY: writes one int.
        self.said("cuDeviceGet", unsafe { (self.functions.device)(&mut device, number) })?;
        Ok(device)
    }

    /// `cuDeviceGetName`.
    pub fn name(&self, device: c_int) -> Result<String, String> {
        let mut bytes = [0 as c_char; 256];
        // SAFETY: writes at most that many bytes, and the last byte of the buffer stays zero.
        let code = unsafe { (self.functions.name)(bytes.as_mut_ptr(), bytes.len() as c_int - 1, device) };
        self.said("cuDeviceGetName", code)?;
        // SAFETY: the last byte is zero whatever was written.
        Ok(unsafe { CStr::from_ptr(bytes.as_ptr()) }.to_string_lossy().into_owned())
    }

    /// `cuDeviceGetAttribute`.
    pub fn attribute(&self, device: c_int, which: c_int) -> Result<c_int, String> {
        let mut value = 0;
        // SAFETY: writes one int.
        self.said("cuDeviceGetAttribute", unsafe { (self.functions.attribute)(&mut value, which, device) })?;
        Ok(value)
    }

    /// Retains the primary context of a device and makes it current in this thread.
    pub fn enter(&self, device: c_int) -> Result<(), String> {
        let mut context = null_mut();
        // SAFETY: writes one handle.
        self.said("cuDevicePrimaryCtxRetain", unsafe { (self.functions.retain)(&mut context, device) })?;
        self.entered.set(Some(device));
        // SAFETY: the handle is the driver's.
        self.said("cuCtxSetCurrent", unsafe { (self.functions.set_current)(context) })
    }

    /// Releases the retained context.
    pub fn leave(&self) {
        if let Some(device) = self.entered.take() {
            // SAFETY: takes no pointer. There is nobody to report a failure to.
            _ = unsafe { (self.functions.release)(device) };
        }
    }

    /// `cuCtxSynchronize`: waits until all work is done.
    pub fn synchronize(&self) -> Result<(), String> {
        // SAFETY: takes no pointer.
        self.said("cuCtxSynchronize", unsafe { (self.functions.synchronize)() })
    }

    /// `cuModuleLoadData` with a complete ELF image.
    pub fn load_module(&self, cubin: &[u8]) -> Result<Handle, String> {
        let mut module = null_mut();
        // SAFETY: the image is an ELF file, which states its own length; the driver copies it.
        let code = unsafe { (self.functions.load_module)(&mut module, cubin.as_ptr().cast()) };
        self.said("cuModuleLoadData", code)?;
        Ok(module)
    }

    /// `cuModuleUnload`.
    pub fn unload(&self, module: Handle) -> Result<(), String> {
        // SAFETY: the handle is the driver's.
        self.said("cuModuleUnload", unsafe { (self.functions.unload)(module) })
    }

    /// `cuModuleGetFunction`.
    pub fn function(&self, module: Handle, name: &CStr) -> Result<Handle, String> {
        let mut function = null_mut();
        // SAFETY: writes one handle; the name ends with a NUL.
        let code = unsafe { (self.functions.function)(&mut function, module, name.as_ptr()) };
        self.said("cuModuleGetFunction", code)?;
        Ok(function)
    }

    /// `cuFuncSetAttribute`.
    pub fn set_attribute(&self, function: Handle, which: c_int, value: c_int) -> Result<(), String> {
        // SAFETY: the handle is the driver's.
        self.said("cuFuncSetAttribute", unsafe { (self.functions.set_attribute)(function, which, value) })
    }

    /// `cuMemAlloc`: returns a device address.
    pub fn allocate(&self, bytes: usize) -> Result<u64, String> {
        let mut at = 0;
        // SAFETY: writes one device address.
        self.said("cuMemAlloc", unsafe { (self.functions.allocate)(&mut at, bytes) })?;
        Ok(at)
    }

    /// `cuMemFree`.
    pub fn free(&self, at: u64) -> Result<(), String> {
        // SAFETY: takes a device address, not one of this process.
        self.said("cuMemFree", unsafe { (self.functions.free)(at) })
    }

    /// `cuMemcpyHtoD`: copies `bytes` to the device.
    pub fn put_at(&self, at: u64, bytes: &[u8]) -> Result<(), String> {
        // SAFETY: reads `bytes.len()` bytes.
        self.said("cuMemcpyHtoD", unsafe { (self.functions.put_at)(at, bytes.as_ptr().cast(), bytes.len()) })
    }

    /// `cuMemcpyDtoH`: copies from the device to `bytes`.
    pub fn take_from(&self, bytes: &mut [u8], at: u64) -> Result<(), String> {
        // SAFETY: writes `bytes.len()` bytes.
        self.said("cuMemcpyDtoH", unsafe { (self.functions.take_from)(bytes.as_mut_ptr().cast(), at, bytes.len()) })
    }

    /// `cuLaunchKernel` on the default stream; each pointer is to the bytes of a parameter.
    pub fn launch(&self, function: Handle, shape: Shape, parameters: &mut [*mut c_void]) -> Result<(), String> {
        let ([gx, gy, gz], [bx, by, bz]) = (shape.grid, shape.block);
        let (stream, extra) = (null_mut(), null_mut());
        let at = parameters.as_mut_ptr();
        // SAFETY: there is one pointer for each parameter of the function, to as many bytes as the
        // parameter has; the driver copies them.
        let code = unsafe { (self.functions.launch)(function, gx, gy, gz, bx, by, bz, shape.smem, stream, at, extra) };
        self.said("cuLaunchKernel", code)
    }

    /// `cuEventCreate`.
    pub fn event(&self) -> Result<Handle, String> {
        let mut event = null_mut();
        // SAFETY: writes one handle.
        self.said("cuEventCreate", unsafe { (self.functions.event)(&mut event, 0) })?;
        Ok(event)
    }

    /// `cuEventDestroy`.
    pub fn drop_event(&self, event: Handle) -> Result<(), String> {
        // SAFETY: the handle is the driver's.
        self.said("cuEventDestroy", unsafe { (self.functions.drop_event)(event) })
    }

    /// `cuEventRecord` on the default stream.
    pub fn record(&self, event: Handle) -> Result<(), String> {
        // SAFETY: the handle is the driver's; the stream is the default one.
        self.said("cuEventRecord", unsafe { (self.functions.record)(event, null_mut()) })
    }

    /// `cuEventElapsedTime`: milliseconds between two events.
    pub fn elapsed(&self, before: Handle, after: Handle) -> Result<f32, String> {
        let mut time = 0.0;
        // SAFETY: writes one float; the handles are the driver's.
        self.said("cuEventElapsedTime", unsafe { (self.functions.elapsed)(&mut time, before, after) })?;
        Ok(time)
    }
}
