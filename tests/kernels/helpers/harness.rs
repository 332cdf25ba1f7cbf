//! Kernels that call one helper, and their launches on the simulator.
//!
//! The input is a helper, a target, the words of each lane, and the memory that its pointers refer
//! to; the result is the returned words of each lane, and the memory. A lane that is not in its own
//! `mask` does not call. A slot named `ptr` gets an offset in the memory.

pub use super::exact::Random;
use object::{Object, ObjectSection};
use sassafras::compile::{Options, compile};
use sassafras::sim::launch::ArgValue;
use sassafras::sim::run::{How, Shape, run_as};
use sassafras::tables::helpers::{Helper, Slot};
use std::cell::RefCell;
use std::fmt::Write;
use std::rc::Rc;

/// Size of the memory in bytes.
pub const MEMORY: usize = 16384;

/// Registers of a slot: type and name.
pub fn registers(slots: &'static [Slot]) -> Vec<(&'static str, String)> {
    slots.iter().flat_map(|s| s.registers().into_iter().map(|r| (s.ty, r))).collect()
}

fn declared(slots: &'static [Slot]) -> String {
    registers(slots).iter().fold(String::new(), |text, (ty, name)| text + &format!(".reg .{ty} {name};\n"))
}

/// Offset of a value within its slot in memory.
fn in_memory(slots: &'static [Slot], line: impl Fn(&Slot, &str, &str, u64) -> String) -> String {
    let mut text = String::new();
    for slot in slots.iter().filter(|s| s.memory) {
        for (i, register) in slot.registers().iter().enumerate() {
            text += &line(slot, register, &format!("m_{}", slot.name), i as u64 * slot.bytes());
        }
    }
    text
}

fn names(slots: &'static [Slot]) -> String {
    let one = |s: &'static Slot| if s.memory { vec![format!("m_{}", s.name)] } else { s.registers() };
    slots.iter().flat_map(one).collect::<Vec<_>>().join(", ")
}

/// The declarations of a helper's registers, and the call.
pub fn call(helper: &'static Helper) -> (String, String) {
    let mut memory = String::new();
    for slot in helper.returns.iter().chain(helper.params).filter(|s| s.memory) {
        let _ = match slot.count {
            0 => writeln!(memory, ".param .{} m_{};", slot.ty, slot.name),
            n => writeln!(memory, ".param .align {} .{} m_{}[{n}];", slot.align, slot.ty, slot.name),
        };
    }
    let put = in_memory(helper.params, |s, r, m, at| format!("st.param.{} [{m}+{at}], {r};\n", s.ty));
    let take = in_memory(helper.returns, |s, r, m, at| format!("ld.param.{} {r}, [{m}+{at}];\n", s.ty));
    let results = if helper.returns.is_empty() { String::new() } else { format!("({}), ", names(helper.returns)) };
    let call = format!("call {results}{}, ({});\n", helper.name, names(helper.params));
    (declared(helper.returns) + &declared(helper.params), format!("{{\n{memory}{put}{call}{take}}}\n"))
}

/// The header of every text for a target, and the helper's declaration.
pub fn head(helper: &Helper, target: &str) -> String {
    format!(".version 9.0\n.target {target}\n.address_size 64\n.extern {};\n", helper.head)
}

/// A kernel over `in`, `out` and `mem` around a body, with the thread index in `t`.
pub fn kernel(declarations: &str, body: &str) -> String {
    format!(
        ".visible .entry k(.param .u64 p_in, .param .u64 p_out, .param .u64 p_mem) {{\n\
         .reg .b64 at, to, mem, w; .reg .b32 t, nt, ct, x32, this_lane; .reg .pred out_of_it;\n{declarations}\
         ld.param.u64 at, [p_in];\nld.param.u64 to, [p_out];\nld.param.u64 mem, [p_mem];\n\
         mov.u32 t, %tid.x;\nmov.u32 nt, %ntid.x;\nmov.u32 ct, %ctaid.x;\nmad.lo.u32 t, ct, nt, t;\n{body}ret;\n}}\n"
    )
}

/// Loads registers from the thread's part of the input.
pub fn loads(list: &[(&'static str, String)]) -> String {
    let mut text = format!("mad.wide.u32 at, t, {}, at;\n", 8 * list.len());
    for (i, (ty, name)) in list.iter().enumerate() {
        let _ = writeln!(text, "ld.global.b64 w, [at+{}];", 8 * i);
        let _ = match ty.ends_with("64") {
            true => writeln!(text, "mov.b64 {name}, w;"),
            false => writeln!(text, "cvt.u32.u64 x32, w;\nmov.b32 {name}, x32;"),
        };
    }
    text
}

/// Stores registers to the thread's part of the output.
pub fn stores(list: &[(&'static str, String)]) -> String {
    let mut text = format!("mad.wide.u32 to, t, {}, to;\n", 8 * list.len());
    for (i, (ty, name)) in list.iter().enumerate() {
        let _ = match ty.ends_with("64") {
            true => writeln!(text, "mov.b64 w, {name};"),
            false => writeln!(text, "mov.b32 x32, {name};\ncvt.u64.u32 w, x32;"),
        };
        let _ = writeln!(text, "st.global.b64 [to+{}], w;", 8 * i);
    }
    text
}

/// The kernel that calls a helper for each lane.
pub fn plain(helper: &'static Helper, target: &str) -> String {
    let (declarations, call) = call(helper);
    let mut body = loads(&registers(helper.params));
    let has = |name: &str| helper.params.iter().any(|s| s.name == name);
    let shared = helper.name.ends_with("_shared");
    let mut text = head(helper, target);
    if has("ptr") && shared {
        text += &format!(".shared .align 16 .b8 tile[{MEMORY}];\n");
        body += &copy("mem", "tile", ".global", ".shared");
        body += "mov.u64 w, tile;\nadd.u64 ptr, ptr, w;\n";
    } else if has("ptr") {
        body += "add.u64 ptr, ptr, mem;\n";
    }
    for slot in helper.returns {
        let zero = if slot.bytes() == 8 { "b64" } else { "b32" };
        body += &slot.registers().iter().fold(String::new(), |t, r| t + &format!("mov.{zero} {r}, 0;\n"));
    }
    if has("mask") {
        body += "mov.u32 this_lane, %laneid;\nshr.u32 x32, mask, this_lane;\nand.b32 x32, x32, 1;\nsetp.eq.u32 out_of_it, x32, 0;\n\
                 @out_of_it bra past;\n";
    }
    body += &call;
    body += "past:\n";
    if has("ptr") && shared {
        body += "bar.sync 0;\n";
        body += &copy("tile", "mem", ".shared", ".global");
    }
    body += &stores(&registers(helper.returns));
    text + &kernel(&declarations, &body)
}

/// Copies the memory with one warp.
pub fn copy(from: &str, to: &str, from_space: &str, to_space: &str) -> String {
    let label = format!("copy_to_{to}");
    format!(
        "{{ .reg .b64 f, g; .reg .b32 i, v; .reg .pred more;\nmov.u64 f, {from};\nmov.u64 g, {to};\n\
         mov.u32 i, %tid.x;\nmul.wide.u32 w, i, 4;\nadd.u64 f, f, w;\nadd.u64 g, g, w;\n\
         {label}:\nld{from_space}.b32 v, [f];\nst{to_space}.b32 [g], v;\nadd.u64 f, f, 128;\nadd.u64 g, g, 128;\n\
         add.u32 i, i, 32;\nsetp.lt.u32 more, i, {};\n@more bra {label};\n}}\nbar.sync 0;\n",
        MEMORY / 4
    )
}

thread_local! {
    /// The last compiled text and its result.
    static LAST: RefCell<(String, Rc<[u8]>)> = RefCell::new((String::new(), Rc::new([])));
}

/// A kernel compiled for a target.
pub struct Bench {
    pub cubin: Rc<[u8]>,
    pub block: u32,
    /// Input and output words per lane.
    pub words: [usize; 2],
}

impl Bench {
    pub fn of(helper: &'static Helper, target: &str, block: u32) -> Result<Bench, String> {
        let words = [registers(helper.params).len(), registers(helper.returns).len()];
        Bench::text(&plain(helper, target), target, block, words)
    }

    pub fn text(source: &str, target: &str, block: u32, words: [usize; 2]) -> Result<Bench, String> {
        // The text determines the target. Tests of whole warps compile the same text again and
        // again.
        if let Some(cubin) = LAST.with_borrow(|last| (last.0 == source).then(|| last.1.clone())) {
            return Ok(Bench { cubin, block, words });
        }
        let options = Options { verify_ir: true, ..Options::new(target) };
        let output = compile(source, &options).map_err(|d| format!("{}\n{source}", d[0].render("k", source)))?;
        let cubin: Rc<[u8]> = output.cubin.into();
        LAST.set((source.to_string(), cubin.clone()));
        Ok(Bench { cubin, block, words })
    }

    /// The instructions of the kernel and of its callees.
    pub fn words_of_code(&self) -> Vec<u8> {
        let file = object::File::parse(&*self.cubin).expect("a cubin of ours");
        let code = file.sections().filter(|s| {
            s.name().is_ok_and(|n| {
                n.starts_with(".text.") || n.starts_with(".nv.constant2") || n.starts_with(".nv.constant4")
            })
        });
        code.flat_map(|s| s.data().map(<[u8]>::to_vec).unwrap_or_default()).collect()
    }

    /// Runs over lanes, whose number must be a multiple of the block size.
    pub fn run(&self, lanes: &[Vec<u64>], memory: &[u8], seed: u64) -> Result<(Vec<Vec<u64>>, Vec<u8>), String> {
        let count = lanes.len();
        let bytes: Vec<u8> = lanes.iter().flatten().flat_map(|w| w.to_le_bytes()).collect();
        let mut args = [
            ArgValue::Buffer { bytes: if bytes.is_empty() { vec![0; 8] } else { bytes }, writable: false },
            ArgValue::Buffer { bytes: vec![0; (count * self.words[1] * 8).max(8)], writable: true },
            ArgValue::Buffer { bytes: memory.to_vec(), writable: true },
        ];
        let shape = Shape { grid: [count as u32 / self.block, 1, 1], block: [self.block, 1, 1], smem: 0 };
        let how = How { jitter: Some(seed), ..How::default() };
        run_as(&self.cubin, "k", shape, &mut args, how).and_then(|ran| ran.clean()).map_err(|f| f.to_string())?;
        let [_, ArgValue::Buffer { bytes: out, .. }, ArgValue::Buffer { bytes: memory, .. }] = args else {
            return Err("the buffers are gone".into());
        };
        let words: Vec<u64> = out.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect();
        let lanes = (0..count).map(|i| words[i * self.words[1]..(i + 1) * self.words[1]].to_vec()).collect();
        Ok((lanes, memory))
    }
}
