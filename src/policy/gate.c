/* The names of the gates. */
#include "taskgate/policy/gate.h"

static const struct {
    const char *name, *label;
} gates[] = {
    [POLICY_GATE_VISIBILITY] = {"visibility", "gate1"},
    [POLICY_GATE_GOVERNANCE] = {"governance", "gate2"},
    [POLICY_GATE_POLICY] = {"policy", "gate3"},
    [POLICY_GATE_APPROVAL] = {"approval", "gate4"},
};

const char *policy_gate_name(enum policy_gate gate)
{
    return gates[gate].name;
}

struct str policy_gate_label(enum policy_gate gate)
{
    return str_from(gates[gate].label);
}
