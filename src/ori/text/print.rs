//! The printer.

use super::FILES;
use crate::ori::function::{Block, ControlWord, Convention, Function, InstId, Listed, Symbol, VReg};
use crate::ori::operand::{Kind, Operand};
use crate::tables::registers::Changes;
use crate::tables::{Op, Tuning};
use cranelift_entity::EntityRef;
use std::fmt::Write;

/// Prints a function.
pub fn print(function: &Function) -> String {
    let mut out = format!("function {} {}", function.name(), function.target().name);
    attributes(function, &mut out);
    out.push('\n');
    let reserved: Vec<VReg> = function.regs().keys().filter(|r| function[*r].phys.is_some()).collect();
    if !reserved.is_empty() {
        out.push_str("phys");
        for reg in reserved {
            let _ = write!(out, " {}={}", reg_name(function, reg), function[reg].phys.unwrap_or(0));
        }
        out.push('\n');
    }
    let fixed: Vec<VReg> = function.regs().keys().filter(|r| function[*r].fixed.is_some()).collect();
    if !fixed.is_empty() && function.regs().values().any(|r| r.fixed.is_some() && r.phys.is_none()) {
        out.push_str("fixed");
        for reg in fixed {
            let _ = write!(out, " {}={}", reg_name(function, reg), function[reg].fixed.unwrap_or(0));
        }
        out.push('\n');
    }
    let uniform: Vec<String> =
        function.regs().iter().filter(|(_, data)| !data.varying).map(|(reg, _)| reg_name(function, reg)).collect();
    if !uniform.is_empty() {
        let _ = writeln!(out, "uniform {}", uniform.join(" "));
    }
    if !function.attributes().rolled.blocks.is_empty() {
        let blocks: Vec<String> = function.attributes().rolled.blocks.iter().map(Block::to_string).collect();
        let _ = writeln!(out, "rolled {}", blocks.join(" "));
    }
    for block in function.layout() {
        let _ = writeln!(out, "{block}:");
        for inst in &function[*block] {
            let _ = writeln!(out, "  {}", instruction(function, *inst));
        }
    }
    out
}

/// The words behind the target: what differs from a new function.
fn attributes(function: &Function, out: &mut String) {
    let flags = [
        ("device", function.attributes().convention == Convention::Device),
        ("slow", function.attributes().convention == Convention::SlowPath),
        ("ssa", function.is_ssa()),
        ("plain", !function.attributes().optimise),
        ("checked", function.attributes().checks_stack),
        ("converted", function.stage().converted),
        ("unsupported", function.stage().unsupported),
        ("legalized", function.stage().legalized),
        ("calling", function.attributes().slow_paths),
        ("rolled", function.attributes().rolled.all),
        ("rows", function.attributes().rows),
        ("private", function.attributes().private),
    ];
    for (word, _) in flags.into_iter().filter(|(_, set)| *set) {
        let _ = write!(out, " {word}");
    }
    let limits = [
        ("max", function.attributes().max_registers),
        ("entry", function.attributes().entry_registers),
        ("threads", function.attributes().threads),
    ];
    for (word, limit) in limits {
        if let Some(limit) = limit {
            let _ = write!(out, " {word}={limit}");
        }
    }
    let numbers = [
        ("local", function.attributes().local_bytes),
        ("frame", function.attributes().frame_bytes),
        ("below", function.attributes().below_stack),
        ("stored", function.attributes().spill_stores),
        ("loaded", function.attributes().spill_loads),
        ("barriers", function.attributes().barriers),
        ("progress", u32::from(function.stage().progress)),
    ];
    for (word, number) in numbers.into_iter().filter(|(_, number)| *number != 0) {
        let _ = write!(out, " {word}={number}");
    }
    for (name, Changes { general: [a, b, c, d], uniform }) in &function.attributes().private_callees {
        let _ = write!(out, " changes={name}:{d:x}:{c:x}:{b:x}:{a:x}:{uniform}");
    }
    if let Some(constants) = &function.attributes().constants {
        let _ = write!(out, " constants={}:{}", constants.start, constants.most);
        constants.values.iter().for_each(|value| {
            let _ = write!(out, ",{value:#x}");
        });
    }
    if function.attributes().tuning != Tuning::default() {
        let _ = write!(out, " tuned={}", function.attributes().tuning.to_string().replace(' ', ","));
    }
    if let Some(patched) = &function.attributes().shader_constants {
        let _ = write!(out, " patched={patched}");
    }
}

fn reg_name(function: &Function, reg: VReg) -> String {
    let file = function[reg].file;
    let prefix = FILES.iter().find(|f| f.0 == file).map_or("?", |f| f.1);
    format!("{prefix}{}", reg.index())
}

/// Prints one instruction.
pub fn instruction(function: &Function, inst: InstId) -> String {
    let data = &function[inst];
    let mut out = String::new();
    if !data.guard.is_null() {
        let _ = write!(out, "@{} ", operand(function, data.guard));
    }
    out.push_str(crate::tables::ori::op_name(data.op));
    let mods: Vec<String> = data.mods.iter().map(|(k, v)| format!("{}={}", k.name(), k.text(v))).collect();
    if !mods.is_empty() {
        let _ = write!(out, "{{{}}}", mods.join(" "));
    }
    let args = function.args(inst);
    if data.op == Op::PHI {
        let _ = write!(out, " d={}", operand(function, args[0]));
        for pair in args[1..].chunks_exact(2) {
            let _ = write!(out, " {}={}", operand(function, pair[0]), operand(function, pair[1]));
        }
    } else {
        for (role, arg) in data.op.info().roles.iter().zip(args).filter(|(_, a)| !a.is_null()) {
            let _ = write!(out, " {}={}", role.role.name(), operand(function, *arg));
        }
    }
    let olds: Vec<String> = function.olds(inst).iter().map(|o| operand(function, *o)).collect();
    if !olds.is_empty() {
        let _ = write!(out, " old({})", olds.join(" "));
    }
    let (uses, defs) = function.extras(inst);
    for (name, list) in [("in", uses), ("out", defs)].into_iter().filter(|e| !e.1.is_empty()) {
        let list: Vec<String> = list.iter().map(|o| operand(function, *o)).collect();
        let _ = write!(out, " {name}({})", list.join(" "));
    }
    if data.contract {
        out.push_str(" contract");
    }
    if data.ordered {
        out.push_str(" ordered");
    }
    let _ = match data.listed {
        Listed::No => Ok(()),
        Listed::Barrier(kind) => write!(out, " listed=barrier{kind}"),
        Listed::Program => write!(out, " listed=program"),
        Listed::Values(words) => write!(out, " listed=values{words}"),
    };
    if function.above_frame().contains(&inst) {
        out.push_str(" above");
    }
    control_word(&data.ctrl, &mut out);
    if data.line != 0 {
        let _ = write!(out, " ; {}", data.line);
    }
    out
}

/// ` ctrl(stall=4 stay write=0 read=1 wait=0x3)`: what differs from a new control word.
fn control_word(ctrl: &ControlWord, out: &mut String) {
    let new = ControlWord::default();
    if *ctrl == new {
        return;
    }
    let mut words = Vec::new();
    let mut number = |name: &str, value: u8, new: u8| {
        if value != new {
            words.push(format!("{name}={value}"));
        }
    };
    number("stall", ctrl.stall, new.stall);
    number("write", ctrl.write_bar, new.write_bar);
    number("read", ctrl.read_bar, new.read_bar);
    number("wait", ctrl.wait, new.wait);
    words.extend(ctrl.stay.then(|| "stay".to_string()));
    let _ = write!(out, " ctrl({})", words.join(" "));
}

fn operand(function: &Function, operand: Operand) -> String {
    let body = match operand.kind() {
        Kind::Null => "_".to_string(),
        Kind::Reg(reg) => reg_name(function, reg),
        Kind::Vector(v) => {
            let names: Vec<String> = function.vector_regs(v).iter().map(|r| reg_name(function, *r)).collect();
            format!("{{{}}}", names.join(","))
        }
        Kind::Imm(_) => format!("{:#x}", function.imm_value(operand).unwrap_or(0)),
        Kind::Const { bank, offset } => format!("c[{bank}][{offset:#x}]"),
        Kind::Label(block) => block.to_string(),
        Kind::Symbol(_) => symbol(function, operand),
        Kind::Special(n) => format!("s{n}"),
        Kind::Zero => "Z".to_string(),
    };
    let sign = if operand.neg() { "-" } else { "" };
    let not = if operand.not() { "!" } else { "" };
    let abs = if operand.abs() { "|" } else { "" };
    format!("{sign}{not}{abs}{body}{abs}")
}

/// `$.start`, `$.zero`, `$.frame`, `$.return.lo`, `$.distance.hi`, `$NAME`, `$!ROLE:ADDEND:NAME`.
fn symbol(function: &Function, operand: Operand) -> String {
    let half = |high: bool| if high { "hi" } else { "lo" };
    match function.symbol_of(operand) {
        Some(Symbol::Start) => "$.start".to_string(),
        Some(Symbol::Driver) => "$.driver".to_string(),
        Some(Symbol::Zero) => "$.zero".to_string(),
        Some(Symbol::FrameSize) => "$.frame".to_string(),
        Some(Symbol::Return { high }) => format!("$.return.{}", half(*high)),
        Some(Symbol::Distance { high }) => format!("$.distance.{}", half(*high)),
        Some(Symbol::Function(name)) => format!("${name}"),
        Some(Symbol::SlowPath(id)) => format!("$.slow.{id}"),
        Some(Symbol::Linked { role, name, addend }) => format!("$!{}:{addend}:{name}", role.name()),
        None => "$?".to_string(),
    }
}
