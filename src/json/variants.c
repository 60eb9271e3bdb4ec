/* Keys beside one another that fold together: a scan that takes folded keys for the keys. */
#include "scanner.h"
#include "taskgate/json/fold.h"

bool fold_finds_variants(struct str json, struct error *error)
{
    struct scanner scanner;
    scanner_init(&scanner, json, error);
    scanner_fold_keys(&scanner);
    bool found = scan_document(&scanner, NULL, NULL, NULL) == SCAN_REFUSED;
    scanner_finish(&scanner);
    return found;
}
