//! Runs kernels on a GPU through the CUDA driver, which is loaded on demand.
//!
//! Cubins, launches and arguments are those of the simulator (`sim`); buffers are updated in place,
//! and the kernel's time is measured. Without a driver or a GPU the constructor returns an error.
//! [`check_arguments`] finds a size mismatch before anything is launched. A successful run frees
//! its memory. An error of the GPU destroys the process's context (the driver's rule), so a caller
//! that wants to go on must start a new process.

mod api;

use crate::arrays::Each;
use crate::cubin;
use crate::sim::launch::{ArgValue, Placed, place};
use crate::sim::patches::patched;
use crate::sim::run::Shape;
use crate::tables::Target;
use api::{Api, Handle};
use std::ffi::{CString, c_void};
use std::path::Path;

/// File names of the driver library on different systems.
const LIBRARIES: [&str; 3] = ["libcuda.so.1", "libcuda.so", "nvcuda.dll"];
/// CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
const CAPABILITY: [i32; 2] = [75, 76];
/// CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
const DYNAMIC_SHARED: i32 = 8;
/// Bytes of dynamic shared memory that a function may use without raising its limit.
const USUAL_SHARED: u32 = 48 << 10;

/// A GPU and its context in this process.
pub struct Card {
    api: Api,
    /// The device's name.
    pub name: String,
    /// Major and minor compute capability.
    pub capability: (u32, u32),
    /// CUDA version of the driver, 1000 × major + 10 × minor.
    pub driver: u32,
}

impl Card {
    /// Opens the first GPU of the system's driver.
    ///
    /// # Errors
    ///
    /// What is missing: the driver or a GPU.
    pub fn first() -> Result<Card, String> {
        let mut errors = Vec::new();
        for name in LIBRARIES {
            match Api::load(Path::new(name)) {
                Ok(api) => return Card::of(api),
                Err(error) => errors.push(error),
            }
        }
        Err(format!("there is no CUDA driver here: {}", errors.join("; ")))
    }

    /// Opens the first GPU of the driver in this file.
    ///
    /// # Errors
    ///
    /// What is missing: the driver or a GPU.
    pub fn of_driver(library: &Path) -> Result<Card, String> {
        Card::of(Api::load(library)?)
    }

    fn of(api: Api) -> Result<Card, String> {
        api.init()?;
        let device = api.device(0)?;
        let [major, minor] = CAPABILITY.each(|which| api.attribute(device, which));
        let capability = (major? as u32, minor? as u32);
        let (name, driver) = (api.name(device)?, api.version()?);
        api.enter(device)?;
        Ok(Card { api, name, capability, driver })
    }

    /// The target of the GPU for a PTX text: the architecture-specific variant (such as `sm_90a`)
    /// if the text's `.target` asks for it.
    pub fn target_for(&self, source: &str) -> Option<&'static Target> {
        let (major, minor) = self.capability;
        let own = source.lines().find_map(|l| l.trim().strip_prefix(".target")).unwrap_or_default();
        let own = own.split([',', ' ', '\t']).find(|word| !word.is_empty()).and_then(Target::by_name);
        let plain = Target::by_name(&format!("sm_{major}{minor}"))?;
        Some(own.filter(|own| own.sm == plain.sm).unwrap_or(plain))
    }

    /// Loads a cubin and unloads it again, to test whether the driver accepts it.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn accepts(&self, cubin: &[u8]) -> Result<(), String> {
        let module = self.api.load_module(cubin)?;
        self.api.unload(module)
    }

    /// Runs a kernel once, then `again` times to measure it. Returns the milliseconds of each later
    /// run; the buffers are those of the first run. Later runs start from the buffers as the first
    /// one left them. The arguments must match the kernel's parameters, see [`check_arguments`].
    ///
    /// # Errors
    ///
    /// The driver's error; the context is then lost.
    pub fn run(
        &self,
        bytes: &[u8],
        kernel: &str,
        shape: Shape,
        args: &mut [ArgValue],
        again: usize,
    ) -> Result<Vec<f32>, String> {
        let Placed { parameters, buffers, .. } = self.arguments(args)?;
        let module = self.api.load_module(&patched(bytes, kernel, shape, &parameters)?)?;
        let name = CString::new(kernel).map_err(|e| e.to_string())?;
        let function = self.api.function(module, &name)?;
        if shape.smem > USUAL_SHARED {
            self.api.set_attribute(function, DYNAMIC_SHARED, shape.smem as i32)?;
        }
        let mut pointers: Vec<*mut c_void> = parameters.iter().map(|v| v.as_ptr().cast_mut().cast()).collect();
        self.api.launch(function, shape, &mut pointers)?;
        self.api.synchronize()?;
        let before = args.to_vec();
        for (arg, buffer) in args.iter_mut().zip(&buffers) {
            if let (Some(bytes), Some(at)) = (arg.buffer_mut(), buffer) {
                self.api.take_from(bytes, *at)?;
            }
        }
        let times = (0..again).map(|_| {
            self.fill(&before, &buffers)?;
            self.time(function, shape, &mut pointers)
        });
        let times = times.collect();
        for at in buffers.into_iter().flatten() {
            self.api.free(at)?;
        }
        self.api.unload(module)?;
        times
    }

    /// Copies the bytes of arguments into their buffers.
    fn fill(&self, args: &[ArgValue], buffers: &[Option<u64>]) -> Result<(), String> {
        for (arg, buffer) in args.iter().zip(buffers) {
            if let (Some((bytes, _)), Some(at)) = (arg.buffer(), buffer) {
                self.api.put_at(*at, bytes)?;
            }
        }
        Ok(())
    }

    fn time(&self, function: Handle, shape: Shape, pointers: &mut [*mut c_void]) -> Result<f32, String> {
        let (before, after) = (self.api.event()?, self.api.event()?);
        self.api.record(before)?;
        self.api.launch(function, shape, pointers)?;
        self.api.record(after)?;
        self.api.synchronize()?;
        let time = self.api.elapsed(before, after)?;
        self.api.drop_event(before)?;
        self.api.drop_event(after)?;
        Ok(time)
    }

    /// Allocates and fills the buffers on the GPU.
    fn arguments(&self, args: &[ArgValue]) -> Result<Placed, String> {
        place(args, |_, bytes, _| {
            let at = self.api.allocate(bytes.len().max(1))?;
            self.api.put_at(at, bytes)?;
            Ok(at)
        })
    }
}

/// Checks that the arguments match the kernel's parameters as stated in the cubin.
///
/// # Errors
///
/// An unreadable cubin, an unknown kernel, or the parameter that does not match.
pub fn check_arguments(bytes: &[u8], kernel: &str, args: &[ArgValue]) -> Result<(), String> {
    let cubin = cubin::read(bytes).map_err(|error| error.to_string())?;
    let function = cubin.function(kernel).filter(|f| f.kernel);
    let function = function.ok_or_else(|| format!("the cubin has no kernel {kernel}"))?;
    let given = place(args, |_, _, _| Ok(0))?.parameters;
    if function.params.len() != given.len() {
        let (has, gets) = (function.params.len(), given.len());
        return Err(format!("{kernel} has {has} parameters and gets {gets} arguments"));
    }
    for (i, (param, given)) in function.params.iter().zip(given).enumerate() {
        if given.len() != usize::from(param.size) {
            return Err(format!("parameter {i} of {kernel} has {} bytes, not {}", param.size, given.len()));
        }
    }
    Ok(())
}

impl Drop for Card {
    fn drop(&mut self) {
        self.api.leave();
    }
}
