/* The first process of a pod: holds its namespaces, reaps what its processes leave, and ends at
 * SIGTERM. */
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>

int main(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    int number = 0;
    while (sigwait(&all, &number) == 0 && number != SIGTERM && number != SIGINT)
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    return 0;
}
