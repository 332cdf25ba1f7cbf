//! Call sites, and the prologue and epilogue of device functions.
//!
//! A call copies its arguments to the registers of the calling convention (`abi`), stores the stack
//! arguments, emits CALL and copies the results. A device function starts with ENTRY, which defines
//! the incoming registers, and ends with a single RET. All argument words are read before the first
//! one is stored, and no instruction that could branch comes between the copies and their CALL.
//!
//! The code of all functions of a kernel is in one section, so the return address is an offset in
//! that section, and so is the value that a function pointer selects in bank 2. Functions of the
//! driver are elsewhere: bank 4 holds their addresses, and the return address is absolute.

use super::abi::{Passed, Places, RETURN_ADDRESS, Signature, Spot};
use super::call_graph::function_of;
use super::params::Home;
use crate::arrays::Each;
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::ori::mods::*;
use crate::ori::{File, Operand, Symbol};
use crate::ptx::ast::{self, Constant, OperandKind, Parameter, SymbolId, SymbolKind};
use crate::tables::choices::{STOPPING, SYSTEM};
use crate::tables::helpers::Helper;
use crate::tables::ptx::{ScalarType, TypeClass};
use crate::tables::{Feature, Op, Role};

/// The target of a call.
pub(crate) enum Target {
    /// A function of the module.
    Function(String),
    /// A function of the driver.
    System(String),
    /// A function pointer: the low word of the register, or the whole address when an object is
    /// built.
    Pointer(Operand),
}

impl Builder<'_> {
    /// `call`
    pub fn call(&mut self, inst: &ast::Instruction) -> Lowered {
        let done = self.f.new_block();
        let guard = self.skip_unless_guarded(done);
        let (target, signature) = self.call_target(inst)?;
        let places = signature.places();
        let (results, arguments) = (list(inst.operands.first()), list(inst.operands.get(2)));
        if results.len() != signature.results.len() || arguments.len() != signature.params.len() {
            return Err(Refusal::At(inst.pos, "Arguments mismatch for instruction 'call'".to_string()));
        }
        self.stack_pointer();
        let frame = self.call_frame(places.stack);
        let types = Signature::types_of_call(self.module, self.calls, inst);
        let mut uses = self.pass_arguments(results, (arguments, &types), (&signature, &places), frame)?;
        let mut defs = Vec::new();
        let mut came = Vec::new();
        for (result, spot) in signature.results.iter().zip(&places.results) {
            came.push(match spot {
                Spot::Registers(first) => self.fixed_run(*first, result.words()),
                Spot::Stack(_) => (0..result.words()).map(|_| self.temp()).collect(),
            });
            if let (Spot::Registers(_), Some(run)) = (spot, came.last()) {
                defs.extend(run);
            }
        }
        let stops = matches!(&target, Target::System(name) if STOPPING.contains(&name.as_str()));
        self.transfer(target, &mut uses, &defs, frame);
        for (words, spot) in came.iter().zip(&places.results) {
            if let Spot::Stack(at) = spot {
                self.load_passed(words, *at, frame);
            }
        }
        for ((result, came), passed) in results.iter().zip(came).zip(&signature.results) {
            self.take_result(result, &came, *passed)?;
        }
        if stops {
            // It does not return; control must go somewhere all the same.
            self.leave();
        }
        self.enter(done);
        self.guard = guard;
        Ok(())
    }

    /// Calls a function of the driver that returns nothing, with words in these registers, and on
    /// the stack.
    pub fn call_driver(&mut self, name: String, registers: &[(u16, Operand)], stack: &[Operand]) {
        let frame = self.call_frame(4 * stack.len() as u64);
        for (n, word) in stack.iter().enumerate() {
            self.store_argument(4 * n as u64, *word, frame);
        }
        let mut uses = Vec::new();
        for (number, word) in registers {
            let d = self.fixed(*number);
            self.copy(d, *word);
            uses.push(d);
        }
        self.transfer(Target::System(name), &mut uses, &[], frame);
    }

    fn call_target(&mut self, inst: &ast::Instruction) -> Lowered<(Target, Signature)> {
        let callee = inst.operands.get(1).ok_or(Refusal::NotBuilt)?;
        let signature = Signature::of_call(self.module, self.calls, inst).ok_or(Refusal::NotBuilt)?;
        if let OperandKind::Symbol { symbol, .. } = callee.kind
            && let Some(id) = function_of(self.module, symbol)
        {
            let id = self.calls.resolved(id);
            let function = &self.module.functions[id];
            let name = function.name.clone();
            // A function that is neither defined nor declared external is an error in an object
            // too.
            let missing = function.body.is_none() && function.linkage == ast::Linkage::Internal;
            if function.body.is_none()
                && let Some(helper) = Helper::by_name(&name)
            {
                return self.call_helper(helper, callee, signature);
            }
            if self.globals.object && !missing {
                if function.body.is_none() && !self.externs.contains(&name) {
                    self.externs.push(name.clone());
                }
                return Ok((Target::Function(name), signature));
            }
            return match (function.body.is_some(), SYSTEM.contains(&name.as_str())) {
                (true, _) => Ok((Target::Function(name), signature)),
                (false, true) => Ok((Target::System(name), signature)),
                _ => Err(Refusal::At(callee.pos, format!("Unresolved extern function '{name}'"))),
            };
        }
        if self.globals.object {
            let value = self.source(callee, ScalarType::U64)?;
            return Ok((Target::Pointer(self.in_pair(value)), signature));
        }
        let pointer = self.source_words(callee, ScalarType::U64)?[0];
        Ok((Target::Pointer(self.in_reg(pointer)), signature))
    }

    /// Calls a runtime helper; its code is appended to the kernel later.
    fn call_helper(
        &mut self,
        helper: &'static Helper,
        callee: &ast::Operand,
        declared: Signature,
    ) -> Lowered<(Target, Signature)> {
        if let Some(why) = helper.family().planned {
            return Err(Refusal::At(callee.pos, format!("Helper '{}' is not implemented: {why}", helper.name)));
        }
        if Signature::of_helper(helper) != declared {
            return Err(Refusal::At(callee.pos, format!("Arguments mismatch for helper '{}'", helper.name)));
        }
        Ok((Target::Function(helper.name.to_string()), declared))
    }

    /// Copies or stores all arguments; returns the registers that the call reads.
    fn pass_arguments(
        &mut self,
        results: &[ast::Operand],
        (arguments, types): (&[ast::Operand], &[ScalarType]),
        (signature, places): (&Signature, &Places),
        frame: Option<(Operand, u64)>,
    ) -> Lowered<Vec<Operand>> {
        let mut values = Vec::new();
        for ((argument, passed), ty) in arguments.iter().zip(&signature.params).zip(types) {
            values.push(self.argument_words(argument, *passed, *ty)?);
        }
        for (words, spot) in values.iter().zip(&places.params) {
            if let Spot::Stack(at) = spot {
                for (n, word) in words.iter().enumerate() {
                    self.store_argument(at + 4 * n as u64, *word, frame);
                }
            }
        }
        let mut uses = Vec::new();
        if let Some(register) = places.result_address {
            let at = match results.first().map(|r| &r.kind) {
                Some(OperandKind::Symbol { symbol, .. }) => self.frame_home(*symbol)?,
                _ => return Err(Refusal::NotBuilt),
            };
            let (d, base, offset) = (self.fixed(register), self.stack_pointer(), self.imm(at as u32));
            self.add(d, base, offset);
            uses.push(d);
        }
        for (words, spot) in values.iter().zip(&places.params) {
            if let Spot::Registers(first) = spot {
                let run = self.fixed_run(*first, words.len());
                run.iter().zip(words).for_each(|(d, a)| self.copy(*d, *a));
                uses.extend(run);
            }
        }
        Ok(uses)
    }

    /// Stores one word of a stack argument.
    pub fn store_argument(&mut self, at: u64, word: Operand, frame: Option<(Operand, u64)>) {
        let Some((base, _)) = frame else { return self.store_local(at, word) };
        let offset = self.literal(at as i64);
        self.put(Op::STL, &[], &[(Role::A, base), (Role::Off, offset), (Role::B, word)]);
    }

    /// Loads the words of a result that was returned on the stack.
    fn load_passed(&mut self, words: &[Operand], at: u64, frame: Option<(Operand, u64)>) {
        let base = frame.map_or_else(|| self.stack_pointer(), |(base, _)| base);
        for (n, word) in words.iter().enumerate() {
            let offset = self.literal((at + 4 * n as u64) as i64);
            self.put(Op::LDL, &[], &[(Role::D, *word), (Role::A, base), (Role::Off, offset)]);
        }
    }

    /// Lowers the stack pointer below the memory that `alloca` took.
    pub fn lower_stack(&mut self, frame: Option<(Operand, u64)>) {
        if let Some((base, _)) = frame {
            let sp = self.stack_pointer();
            self.put(Op::MOV, &[], &[(Role::D, sp), (Role::A, base)]);
        }
    }

    /// Restores the stack pointer after the call.
    pub fn raise_stack(&mut self, frame: Option<(Operand, u64)>) {
        if let Some((_, saved)) = frame {
            let (sp, offset) = (self.stack_pointer(), self.literal(saved as i64));
            self.put(Op::LDL, &[], &[(Role::D, sp), (Role::A, sp), (Role::Off, offset)]);
        }
    }

    /// The words of an argument: a parameter variable, a register or a constant.
    fn argument_words(&mut self, argument: &ast::Operand, passed: Passed, ty: ScalarType) -> Lowered<Vec<Operand>> {
        if let OperandKind::Constant(Constant::F64(bits)) = argument.kind
            && ty.class() == TypeClass::Bits
            && passed.size == 4
        {
            // A float constant without a type to round to is passed as its low bits.
            let low = bits & u64::from(u32::MAX);
            return Ok(vec![if low == 0 { Operand::zero() } else { self.f.imm(low) }]);
        }
        if let OperandKind::Symbol { symbol, offset: 0, .. } = argument.kind
            && self.homes.contains_key(&symbol)
        {
            let words = self.passed_words(symbol, passed)?;
            return if words.len() == passed.words() { Ok(words) } else { Err(mismatch(argument)) };
        }
        if let OperandKind::Register(used) = &argument.kind
            && used.part == ast::Part::Whole
        {
            let words = self.register_words(used.register);
            return if words.len() == passed.words() { Ok(words) } else { Err(mismatch(argument)) };
        }
        let ty = if passed.size == 8 { ScalarType::B64 } else { ScalarType::B32 };
        let value = self.source(argument, ty)?;
        let mut words = self.words_of(value);
        words.truncate(passed.words());
        if words.len() == passed.words() { Ok(words) } else { Err(mismatch(argument)) }
    }

    fn take_result(&mut self, result: &ast::Operand, came: &[Operand], passed: Passed) -> Lowered {
        match &result.kind {
            OperandKind::Sink => Ok(()),
            OperandKind::Symbol { symbol, offset: 0, .. } if self.homes.contains_key(symbol) => {
                self.take_words(*symbol, came)
            }
            OperandKind::Register(used) if used.part == ast::Part::Whole => {
                if came.len() != passed.words() {
                    return Err(mismatch(result));
                }
                self.take_register(used.register, came);
                Ok(())
            }
            _ => Err(mismatch(result)),
        }
    }

    /// Emits the CALL and computes its return address.
    pub fn transfer(
        &mut self,
        target: Target,
        uses: &mut Vec<Operand>,
        defs: &[Operand],
        frame: Option<(Operand, u64)>,
    ) {
        if self.globals.object {
            return self.transfer_linked(target, uses, defs, frame);
        }
        let [low, high] = RETURN_ADDRESS.each(|n| self.f.new_fixed(File::R, n));
        let start = self.f.symbol(Symbol::Start);
        let (mode, address, place) = match target {
            Target::Function(name) => (MODE_REL, Operand::NULL, self.f.symbol(Symbol::Function(name))),
            Target::Pointer(pointer) => {
                let offset = self.temp_pair();
                let table = Operand::constant(2, 0);
                self.branch_bank = true;
                self.put(Op::LDC, &[SIZE_64], &[(Role::D, offset), (Role::A, pointer), (Role::C, table)]);
                (MODE_REL, offset, start)
            }
            Target::System(name) => {
                let slot = self.globals.function_slot(&name);
                if !self.externs.contains(&name) {
                    self.externs.push(name);
                }
                let address = self.temp_pair();
                let from = Operand::constant(4, slot as u16);
                self.put(Op::LDC, &[SIZE_64], &[(Role::D, address), (Role::C, from)]);
                (MODE_ABS, address, self.f.symbol(Symbol::Driver))
            }
        };
        if mode == MODE_ABS {
            self.absolute_return(low, high);
        } else {
            for (reg, high) in [(low, false), (high, true)] {
                let address = self.f.symbol(Symbol::Return { high });
                self.put(Op::MOV, &[], &[(Role::D, Operand::reg(reg)), (Role::A, address)]);
            }
        }
        uses.extend([Operand::reg(low), Operand::reg(high)]);
        self.lower_stack(frame);
        let call = self.put(Op::CALL, &[mode, NOINC], &[(Role::A, address), (Role::Target, place)]);
        self.f.set_extras(call, uses, defs);
        self.raise_stack(frame);
    }

    /// Computes the absolute address of the instruction behind the call, wherever the code is
    /// loaded.
    fn absolute_return(&mut self, low: crate::ori::VReg, high: crate::ori::VReg) {
        if self.has(Feature::LepcTarget) {
            let pair = Operand::vector(self.f.vector(&[low, high]));
            let place = self.f.symbol(Symbol::Return { high: false });
            self.put(Op::LEPC, &[], &[(Role::D, pair), (Role::Target, place)]);
            return;
        }
        let here = self.temp_pair();
        self.put(Op::LEPC, &[], &[(Role::D, here)]);
        let distance = [false, true].each(|high| self.f.symbol(Symbol::Distance { high }));
        let here = self.words(here);
        self.add_long([Operand::reg(low), Operand::reg(high)], here, distance, false);
    }

    fn frame_home(&self, id: SymbolId) -> Lowered<u64> {
        match self.homes.get(&id) {
            Some(Home::Frame(at)) => Ok(*at),
            _ => Err(Refusal::NotBuilt),
        }
    }

    /// A virtual register fixed to a register of the convention.
    pub fn fixed(&mut self, number: u16) -> Operand {
        Operand::reg(self.f.new_fixed(File::R, number))
    }

    fn fixed_run(&mut self, first: u16, count: usize) -> Vec<Operand> {
        (0..count as u16).map(|n| self.fixed(first + n)).collect()
    }

    /// The prologue of a device function: moves each parameter to its home.
    pub fn arrive(&mut self) -> Lowered {
        let signature = Signature::of_function(self.module, self.source);
        let places = signature.places();
        let mut defs = Vec::new();
        let mut moves: Vec<(Operand, Operand)> = Vec::new();
        if let Some(register) = places.result_address {
            let (from, to) = (self.fixed(register), self.temp());
            self.result_address = to;
            moves.push((to, from));
            defs.push(from);
        }
        let mut stacked = Vec::new();
        let mut framed = Vec::new();
        let mut came = Vec::new();
        for (param, spot) in self.source.params.iter().zip(&places.params) {
            let (words, frame) = self.parameter_words(param)?;
            if let Parameter::Register(id) = param {
                came.push((*id, words.clone()));
            }
            match spot {
                Spot::Registers(first) => {
                    let run = self.fixed_run(*first, words.len());
                    defs.extend(&run);
                    moves.extend(words.iter().copied().zip(run));
                }
                Spot::Stack(at) => stacked.extend(words.iter().enumerate().map(|(n, w)| (*w, at + 4 * n as u64))),
            }
            framed.extend(
                frame.into_iter().flat_map(|f| words.iter().enumerate().map(move |(n, w)| (*w, f + 4 * n as u64))),
            );
        }
        let address = RETURN_ADDRESS.each(|n| self.fixed(n));
        defs.extend(address);
        self.return_address = [self.temp(), self.temp()];
        moves.extend(self.return_address.into_iter().zip(address));
        let entry = self.put(Op::ENTRY, &[], &[]);
        self.f.set_extras(entry, &[], &defs);
        moves.into_iter().for_each(|(d, a)| self.copy(d, a));
        if let (true, Some(Parameter::Memory(id)), Some(Spot::Stack(at))) =
            (signature.open, self.source.params.last(), places.params.last())
        {
            self.place_above(*id, *at);
        }
        for (word, at) in stacked {
            let (base, offset) = (self.stack_pointer(), self.literal(at as i64));
            let load = self.put(Op::LDL, &[], &[(Role::D, word), (Role::A, base), (Role::Off, offset)]);
            self.f.above_frame_mut().push(load);
        }
        framed.into_iter().for_each(|(word, at)| self.store_local(at, word));
        came.into_iter().for_each(|(id, words)| self.take_register(id, &words));
        self.split_arrivals();
        Ok(())
    }

    /// Computes the address of a parameter whose extent only the caller knows. Its symbol keeps the
    /// size of the frame out of the optimiser's sight.
    fn place_above(&mut self, id: SymbolId, at: u64) {
        let (frame, end, address) = (self.temp(), self.temp(), self.temp());
        let size = self.f.symbol(Symbol::FrameSize);
        self.put(Op::MOV, &[], &[(Role::D, frame), (Role::A, size)]);
        let (sp, offset) = (self.stack_pointer(), self.imm(at as u32));
        self.add(end, sp, frame);
        self.add(address, end, offset);
        self.homes.insert(id, Home::Above(address));
    }

    /// Registers that receive the words of a parameter, and the frame offset they are stored to, if
    /// any.
    fn parameter_words(&mut self, param: &Parameter) -> Lowered<(Vec<Operand>, Option<u64>)> {
        match param {
            Parameter::Register(id) => Ok((self.homes_of_register(*id), None)),
            Parameter::Memory(id) => match self.homes.get(id).cloned() {
                Some(Home::Words(words)) => Ok((words, None)),
                Some(Home::Frame(at)) => {
                    let SymbolKind::Variable(v) = &self.module.symbols[*id].kind else { return Err(Refusal::NotBuilt) };
                    Ok(((0..v.size.div_ceil(4)).map(|_| self.temp()).collect(), Some(at)))
                }
                Some(Home::Above(_)) | None => Err(Refusal::NotBuilt),
            },
        }
    }

    /// The epilogue of a device function: passes the results to the caller and returns.
    pub fn depart(&mut self) -> Lowered {
        let signature = Signature::of_function(self.module, self.source);
        let places = signature.places();
        let mut values = Vec::new();
        for (result, passed) in self.source.results.iter().zip(&signature.results) {
            values.push(match result {
                Parameter::Memory(id) => self.passed_words(*id, *passed)?,
                Parameter::Register(id) => self.register_words(*id),
            });
        }
        let mut uses = Vec::new();
        if places.result_address.is_some() {
            let base = self.result_address;
            for (n, word) in values.iter().flatten().enumerate() {
                let offset = self.literal(4 * n as i64);
                self.put(Op::STL, &[], &[(Role::A, base), (Role::Off, offset), (Role::B, *word)]);
            }
        } else {
            for (words, spot) in values.iter().zip(&places.results) {
                let Spot::Stack(at) = spot else { continue };
                for (n, word) in words.iter().enumerate() {
                    let (base, offset) = (self.stack_pointer(), self.literal((at + 4 * n as u64) as i64));
                    let args = [(Role::A, base), (Role::Off, offset), (Role::B, *word)];
                    let store = self.put(Op::STL, &[], &args);
                    self.f.above_frame_mut().push(store);
                }
            }
            for (words, spot) in values.iter().zip(&places.results) {
                let Spot::Registers(first) = spot else { continue };
                let run = self.fixed_run(*first, words.len());
                run.iter().zip(words).for_each(|(d, a)| self.copy(*d, *a));
                uses.extend(run);
            }
        }
        let regs = RETURN_ADDRESS.each(|n| self.f.new_fixed(File::R, n));
        let back = self.return_address;
        regs.into_iter().zip(back).for_each(|(d, a)| self.copy(Operand::reg(d), a));
        let pair = Operand::vector(self.f.vector(&regs));
        let (mode, start) = match self.globals.object {
            true => (MODE_ABS, self.f.symbol(Symbol::Zero)),
            false => (MODE_REL, self.f.symbol(Symbol::Start)),
        };
        let ret = self.put(Op::RET, &[mode, NODEC], &[(Role::A, pair), (Role::Target, start)]);
        self.f.set_extras(ret, &uses, &[]);
        Ok(())
    }
}

fn list(operand: Option<&ast::Operand>) -> &[ast::Operand] {
    match operand.map(|o| &o.kind) {
        Some(OperandKind::List(list)) => list,
        _ => &[],
    }
}

fn mismatch(operand: &ast::Operand) -> Refusal {
    Refusal::At(operand.pos, "Arguments mismatch for instruction 'call'".to_string())
}
