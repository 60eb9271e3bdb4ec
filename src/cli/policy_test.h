/*
 * taskgate policy test: files of cases beside the rules and policies that they test.
 *
 * A file is read as a whole and checked against its target before any case runs. Every mistake goes
 * to stderr as FILE:LINE:COLUMN. docs/policy.md describes the format.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "consultation.h"
#include "document.h"
#include "taskgate/core/buffer.h"
#include "taskgate/gateway/snapshot.h"
#include "taskgate/policy/cedar.h"

/* The outcome of a call. */
enum test_decision {
    TEST_FORWARD,
    TEST_APPROVE,
    TEST_DENY,    /* a rule says so */
    TEST_REJECT,  /* policies say so */
    TEST_HIDDEN,  /* by `expose` or `enabled` of the source */
    TEST_INVALID, /* for keys of its arguments that fold alike */
    TEST_DECISION_COUNT
};
/* "forward" … */
const char *test_decision_name(enum test_decision decision);

/* Names of policies; not looked at unless the case gives them. */
struct test_names {
    bool is_given;
    struct config_strings names;
};

struct test_case {
    char *name;
    int line, column;
    /* the request */
    char *tool;
    char *arguments, *principal, *at, *annotations; /* as consultation_options has them, or NULL */
    const struct config_source *source;
    /* the expectation */
    enum test_decision decision;
    bool has_rule;
    const struct config_rule *rule;         /* NULL: the default action */
    const struct config_workflow *workflow; /* NULL: any */
    struct test_names policies, errors;
};

/* A variable of the configuration, as the file of cases gives it. */
struct test_variable {
    char *name, *value;
};

struct test_file {
    const char *path; /* borrowed */
    char *target;     /* of the configuration or the policies that are tested */
    bool has_rules;   /* it is a configuration */
    struct test_variable *variables;
    size_t variable_count;
    struct snapshot *snapshot;
    struct test_case *cases;
    size_t count;
    /* The rules, then the default action, and the policies that a case has reached. */
    bool *rules, *policies;
};

/* ---- policy_test_read.c ---- */
/* Reads the cases and their target. False after lines on stderr; test_file_finish() in any
 * case. */
bool test_file_init(struct test_file *file, const char *path);
void test_file_finish(struct test_file *file);

/* ---- policy_test_target.c ---- */
/* Loads the file `file->target`; `root` is the document of the cases. False after lines on
 * stderr. */
bool test_target_load(struct test_file *file, const struct node *root);

/* ---- policy_test_value.c: from YAML to the JSON that an agent would send ---- */
/* Plain numbers, true, false and null have their JSON meaning, all else is text. */
void test_value_write(struct buffer *out, const struct node *node);

/* ---- policy_test_run.c ---- */
/* One expectation that was not met. */
struct test_difference {
    const char *what; /* "decision" … */
    char *expected, *actual;
};
#define TEST_DIFFERENCES_MAX 5
struct test_outcome {
    struct consultation consultation;
    struct policy_decision ruled; /* before policies were asked */
    enum test_decision decision;
    struct test_difference differences[TEST_DIFFERENCES_MAX];
    size_t difference_count; /* 0: passed */
};
/* Runs one case and notes the rules and policies that it reaches; false after a line on stderr if
 * it cannot run. test_outcome_finish() in any case. */
bool test_case_run(struct test_file *file, const struct test_case *one,
                   struct test_outcome *outcome);
void test_outcome_finish(struct test_outcome *outcome);

/* ---- policy_test_name.c ---- */
/* Its @name, for policies that share an @id; else policy_name_of(). */
struct str test_name_of(const struct cedar_policy *policy);
/* Whether it is the policy's @name or @id, or "policy0" … by place. */
bool test_names_fit(const char *name, const struct cedar_policy *policy);

/* ---- policy_test_report.c ---- */
void test_report_failure(struct buffer *out, const struct test_file *file,
                         const struct test_case *one, const struct test_outcome *outcome);
void test_report_case_json(struct buffer *out, const struct test_case *one,
                           const struct test_outcome *outcome);
/* One line for each rule and policy that no case has reached; how many there are. */
size_t test_report_unreached(struct buffer *out, const struct test_file *file);
/* An array of the same. */
void test_report_unreached_json(struct buffer *out, const struct test_file *file);
